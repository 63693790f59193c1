"""`python -m oxiseq`: the command line, where its folder is not on PATH."""

from oxiseq.cli import main

if __name__ == "__main__":
    main(prog_name="python -m oxiseq")
