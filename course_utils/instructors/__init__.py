"""For instructors: editions with and without solutions, grading, sheets to print, a timetable."""
