"""Where rows live: frames, files and databases, reading and counting."""
