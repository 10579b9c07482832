"""The command."""

from calibration.laws import main
from sim import command

if __name__ == "__main__":
    command.run("calibration.laws", main)
