"""Compares the learned automata and writes `RESULTS.md` and the dot files.

Fails if a difference has no line in `explanations.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from explanations import EXPLANATIONS, INTRODUCTION
from learn import BINARY
from sut import Automaton, ClientUnderTest, ServerUnderTest

HERE = Path(__file__).parent
PEERS = ["hybriq/rustls", "quinn", "s2n-quic"]
# An end may send these when it likes.
UNASKED = {"NEW_CONNECTION_ID", "NEW_TOKEN"}
CLOSE = re.compile(r"CLOSE\((0x[0-9a-f]+)\)")
CLOSED = "(closed)"
# Words that are run again for each difference.
EXAMPLES = 1
# Consequences of an earlier difference.
ALONE = {CLOSED, "(not sent)"}


@dataclass
class Machine:
    """A learned automaton: for each state and letter the output and the next state."""

    facts: dict[str, object]
    states: list[dict[str, tuple[str, int]]] = field(default_factory=list)

    @staticmethod
    def load(path: Path) -> Machine:
        facts = json.loads(path.read_text())
        machine = Machine(facts)
        for state in facts["states"]:
            machine.states.append(
                {
                    letter: (group["output"], group["to"])
                    for group in state["transitions"]
                    for letter in group["letters"].split()
                }
            )
        return machine

    def is_end(self, state: int) -> bool:
        return all(output == CLOSED for output, _ in self.states[state].values())


def verdict(output: str) -> str:
    """Returns the part of an output that is compared: a close by its code, other frames by name."""
    if code := CLOSE.search(output):
        return f"close {code[1]}"
    parts = []
    for space, frames in re.findall(r"(\S+)\[([^\]]*)\]", output):
        kept = [one for one in frames.split() if one not in UNASKED]
        if kept:
            parts.append(f"{space}[{' '.join(kept)}]")
    rest = re.sub(r"\S+\[[^\]]*\]", "", output).split()
    return " ".join(rest + parts) or "–"


@dataclass
class Difference:
    """A letter that the implementations answer differently, in one or more states."""

    letter: str
    verdicts: tuple[str | None, ...]
    examples: list[tuple[str, ...]]
    states: int = 1


def differences(machines: list[Machine]) -> list[Difference]:
    """Walks all machines together; one that differs from the first leaves the walk there."""
    found: dict[tuple[str, tuple[str | None, ...]], Difference] = {}
    start: tuple[int | None, ...] = (0,) * len(machines)
    seen = {start}
    queue: deque[tuple[tuple[int | None, ...], tuple[str, ...]]] = deque([(start, ())])
    while queue:
        at, word = queue.popleft()
        for letter in machines[0].states[0]:
            steps = [
                None if state is None else machine.states[state][letter]
                for machine, state in zip(machines, at, strict=True)
            ]
            verdicts = tuple(None if step is None else verdict(step[0]) for step in steps)
            verdicts = tuple(
                None if one in ALONE and one != verdicts[0] else one for one in verdicts
            )
            is_alone = verdicts[0] in ALONE
            if not is_alone and any(one not in (None, verdicts[0]) for one in verdicts):
                key = (letter, verdicts)
                one = found.setdefault(key, Difference(letter, verdicts, [], 0))
                one.examples.append((*word, letter))
                one.states += 1
            to = tuple(
                step[1] if step is not None and one == verdicts[0] else None
                for step, one in zip(steps, verdicts, strict=True)
            )
            alive = to[0] is not None and not machines[0].is_end(to[0])
            if alive and any(one is not None for one in to[1:]) and to not in seen:
                seen.add(to)
                queue.append((to, (*word, letter)))
    return list(found.values())


def confirmed(found: list[Difference], suts: list[Automaton]) -> list[Difference]:
    """Runs examples of all differences again and returns those that happen.

    A machine is a hypothesis: where it is wrong, it shows differences that are none.
    """
    words = {word for one in found for word in one.examples[:EXAMPLES]}
    with ThreadPoolExecutor(len(suts)) as pool:
        list(pool.map(lambda sut: sut.run_all(words), suts))
    kept: dict[tuple[str, tuple[str | None, ...]], Difference] = {}
    for one in found:
        for word in one.examples[:EXAMPLES]:
            runs = [[verdict(output) for output in sut.known(word) or ()] for sut in suts]
            agree = [run[:-1] == runs[0][:-1] and run[-1] not in ALONE for run in runs]
            verdicts = tuple(
                run[-1] if same else None for run, same in zip(runs, agree, strict=True)
            )
            if not agree[0] or len({v for v in verdicts if v is not None}) < 2:
                continue
            key = (one.letter, verdicts)
            real = kept.setdefault(key, Difference(one.letter, verdicts, [word], 0))
            real.examples = [min(real.examples[0], word, key=len)]
            real.states += 1
    return merged(list(kept.values()))


def merged(found: list[Difference]) -> list[Difference]:
    """Joins a difference with one that says the same and more."""
    found.sort(key=lambda one: sum(v is None for v in one.verdicts))
    kept: list[Difference] = []
    for one in found:
        for other in kept:
            same = all(
                mine in (None, theirs)
                for mine, theirs in zip(one.verdicts, other.verdicts, strict=True)
            )
            if one.letter == other.letter and same:
                other.states += one.states
                break
        else:
            kept.append(one)
    return sorted(kept, key=lambda one: (one.letter, str(one.verdicts)))


def explain(role: str, difference: Difference) -> str | None:
    for roles, letters, verdicts, text in EXPLANATIONS:
        word = " ".join(difference.examples[0])
        fits = re.fullmatch(letters, difference.letter) or re.fullmatch(letters, word)
        if role not in roles.split() or not fits:
            continue
        pairs = zip(verdicts, difference.verdicts, strict=True)
        if all(mine is None or re.fullmatch(pattern, mine) for pattern, mine in pairs):
            return text
    return None


def summary(machines: dict[str, Machine]) -> list[str]:
    lines = [
        "| implementation | states | transitions | words run | walks | words with noise | time |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, machine in machines.items():
        facts = machine.facts
        walks = f"{facts['walks']}" + ("" if facts["walks complete"] else " (time was up)")
        transitions = sum(len(state) for state in machine.states)
        lines.append(
            f"| {name} | {len(machine.states)} | {transitions} | {facts['words run']} | {walks} "
            f"| {facts['noisy words']} | {facts['seconds']} s |"
        )
    return lines


def table(role: str, machines: dict[str, Machine], suts: list[Automaton]) -> tuple[list[str], int]:
    lines = [f"| letter | {' | '.join(machines)} | after | why |"]
    lines.append("|---|" + "---|" * len(machines) + "---|---|")
    unexplained = 0
    for one in confirmed(differences(list(machines.values())), suts):
        why = explain(role, one)
        unexplained += why is None
        verdicts = " | ".join("·" if v is None else v for v in one.verdicts)
        before = " ".join(one.examples[0][:-1]) or "nothing"
        lines.append(f"| `{one.letter}` | {verdicts} | {before} | {why or '**unexplained**'} |")
    return lines, unexplained


def dot(name: str, machine: Machine) -> str:
    """Draws the transitions that neither close the connection nor change nothing."""
    lines = [f'digraph "{name}" {{', "rankdir=LR;"]
    for number, state in enumerate(machine.states):
        if machine.is_end(number):
            continue
        edges: dict[tuple[str, int], list[str]] = {}
        for letter, (output, to) in state.items():
            if to != number and not machine.is_end(to):
                edges.setdefault((output, to), []).append(letter)
        for (output, to), letters in edges.items():
            names = "\\n".join(letters)
            lines.append(f'{number} -> {to} [label="{names}\\n/ {output}"];')
    return "\n".join([*lines, "}"]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=BINARY)
    binary = parser.parse_args().binary
    lines = [INTRODUCTION.strip(), ""]
    failures = 0
    for role in ("server", "client"):
        machines = {}
        for peer in PEERS:
            path = HERE / "machines" / f"{role}-{peer.replace('/', '-')}.json"
            if path.exists():
                machines[peer] = Machine.load(path)
                path.with_suffix(".dot").write_text(dot(peer, machines[peer]))
        if not machines:
            continue
        kind = {"server": ServerUnderTest, "client": ClientUnderTest}[role]
        suts: list[Automaton] = [kind(binary, name) for name in machines]
        rows, unexplained = table(role, machines, suts)
        for sut in suts:
            sut.stop()
        failures += unexplained
        lines += [f"## {role.capitalize()}s", "", *summary(machines), ""]
        lines += ["### Differences", "", *rows, ""]
    (HERE / "RESULTS.md").write_text("\n".join(lines))
    print(f"{failures} differences without an explanation")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
