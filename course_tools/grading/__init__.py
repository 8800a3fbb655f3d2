"""Grades notebooks that were handed in; for instructors, not handed out. See `grade`, and `grade.grade` for one file."""
