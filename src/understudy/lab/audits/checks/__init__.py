"""The steps of an audit that look at a method from inside."""
