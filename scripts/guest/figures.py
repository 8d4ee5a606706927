# SPDX-License-Identifier: MIT
"""A table of figures that is measured in a guest. Imported."""

import json
import os
import pathlib
import statistics


class Table:
    """Lines for people, samples for programs, and whether all goals are met."""

    def __init__(self):
        self.lines, self.samples, self.missed = [], {}, 0

    def say(self, line=""):
        print(line, flush=True)
        self.lines.append(line)

    def judge(self, goal, met):
        self.missed += not met
        return f"  goal {goal}: {'met' if met else 'MISSED'}"

    def row(self, name, values, unit, note="", goal=None):
        median = statistics.median(values)
        verdict = ""
        if goal is not None:
            below, limit = goal
            verdict = self.judge(f"{'<' if below else '>='} {limit}",
                                 median < limit if below else median >= limit)
        self.say(f"{name:<46}{median:>12.3f} {unit:<5} n={len(values)}{note}{verdict}")
        self.samples[name] = {"unit": unit, "samples": values}
        return median

    def keep(self, name):
        """In the directory of the run, for whoever has booted the guest"""
        out = pathlib.Path(os.environ["OUT"])
        (out / f"{name}.txt").write_text("\n".join(self.lines) + "\n")
        (out / f"{name}.json").write_text(json.dumps(self.samples, indent=2) + "\n")
