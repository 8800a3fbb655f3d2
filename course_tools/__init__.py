"""How the course is made; a learner's notebook imports nothing of it. `python -m course_tools` lists its commands."""
