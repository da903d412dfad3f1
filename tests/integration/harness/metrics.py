"""Reads the text exposition format, as strictly as Prometheus does."""
import re

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"^({_NAME})(?:\{{(.*)\}})? (\S+)(?: -?\d+)?$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)')
_ESCAPE = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def _labels(text):
    labels, position = {}, 0
    while position < len(text):
        match = _LABEL.match(text, position)
        assert match, f"malformed labels: {text!r}"
        assert match[1] not in labels, f"label {match[1]} twice: {text!r}"
        labels[match[1]] = re.sub(r'\\[\\n"]', lambda m: _ESCAPE[m[0]], match[2])
        position = match.end()
    return labels


class Metrics:
    def __init__(self, text):
        self.samples = {}       # (name, ((label, value), ...)) -> float
        self.types = {}
        self.helps = {}
        assert text.endswith("\n"), "the last line must end"
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:4]
                assert name not in self.types, f"TYPE of {name} twice"
                self.types[name] = kind
            elif line.startswith("# HELP "):
                name, _, text_of_help = line[len("# HELP "):].partition(" ")
                self.helps[name] = text_of_help
            elif line and not line.startswith("#"):
                match = _SAMPLE.match(line)
                assert match, f"malformed sample: {line!r}"
                key = match[1], tuple(sorted(_labels(match[2] or "").items()))
                assert key not in self.samples, f"sample twice: {line!r}"
                self.samples[key] = float(match[3])

    def select(self, name, **labels):
        """All samples of this name that carry these labels, among others: {labels: value}."""
        return {key: value for (sample, key), value in self.samples.items()
                if sample == name and labels.items() <= dict(key).items()}

    def sum(self, name, **labels):
        """Their sum; 0 where there is none, as a counter that has not counted yet."""
        return sum(self.select(name, **labels).values())

    def value(self, name, **labels):
        """The one sample that matches."""
        found = self.select(name, **labels)
        assert len(found) == 1, f"{name}{labels}: {len(found)} samples"
        return next(iter(found.values()))
