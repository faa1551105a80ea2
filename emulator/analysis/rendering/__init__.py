"""Reports as people see them: tables, the story, the picture, HTML for notebooks."""
