"""For Python programs that are stages of a workflow: program('python3', { args: ['x.py'], protocol: 'stemwork' })."""

import json
import os
import sys


class Job:
    """What the stage is to do, and how it tells what it has done."""

    def __init__(self):
        with open(os.environ["STEMWORK_JOB"], encoding="utf-8") as file:
            given = json.load(file)
        self.id = given["jobId"]
        self.params = given["params"]
        #: Paths of the input files, by the names of their params.
        self.inputs = {name: file["path"] for name, file in given["inputs"].items()}
        #: Paths at which the outputs are to be written.
        self.outputs = given["outputs"]
        #: A folder for intermediate files; the program runs in it.
        self.directory = given["directory"]
        #: Paths of the files that earlier attempts kept, in order.
        self.kept = given["checkpoint"]

    def progress(self, fraction):
        """Tells how much is done, from 0 to 1."""
        self._say({"progress": fraction})

    def detail(self, name, value):
        """Adds to the details of the job."""
        self._say({"detail": name, "value": value})

    def keep(self, path):
        """Keeps a file for the next attempt, after those kept before. It must not be changed, and is gone later."""
        self._say({"keep": path})

    def bad_input(self, message):
        """Ends the program: the file is at fault, and the client reads this sentence."""
        self._say({"badInput": message})
        sys.exit(1)

    @staticmethod
    def _say(message):
        # JSON has neither NaN nor infinity, as the loudness of silence is: null, as in JavaScript.
        plain = json.loads(json.dumps(message, default=_plain), parse_constant=lambda _: None)
        # A line of its own, whatever else was printed.
        print("\n" + json.dumps(plain), flush=True)


def _plain(value):
    """Numbers and arrays of NumPy, and tensors."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON: pass numbers, texts, lists or dicts")
