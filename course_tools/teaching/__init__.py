"""For instructors: editions with and without solutions, lectures, routes and their timetable."""
