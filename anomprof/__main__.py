"""``python -m anomprof``."""

from anomprof.cli import main

if __name__ == "__main__":
    main()
