"""The method `rake` by itself: hostile tables, growth, what each part is worth, and how well its constants travel."""
