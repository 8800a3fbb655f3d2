"""A command called as the command line calls it."""


def called(main, arguments, capsys):
    """(exit status, what was printed, what was printed as an error), whether main() returns or exits."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as ended:
        status = ended.code
    return status, *capsys.readouterr()
