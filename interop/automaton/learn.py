"""Learns the automaton of one implementation: `learn.py ROLE PEER`.

Writes `machines/ROLE-PEER.json`, which `report.py` compares.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

from aalpy.automata import MealyMachine
from aalpy.base import Oracle
from aalpy.learning_algs import run_KV

from sut import CLOSED, NOT_SENT, Automaton, ClientUnderTest, Contradiction, ServerUnderTest, Word

HERE = Path(__file__).parent
BINARY = HERE.parents[1] / "target/debug/examples/automaton_peer"
WALK_LEN = 5


class Walks(Oracle):
    """Random walks from every state of the hypothesis that seldom end the connection early."""

    def __init__(self, sut: Automaton, per_state: int, seed: int, until: float) -> None:
        super().__init__(sorted(sut.alphabet), sut)
        self.sut = sut
        self.per_state = per_state
        self.random = random.Random(seed)
        self.until = until
        # False while a hypothesis was not checked to the end.
        self.complete = False
        self.save: Callable[[MealyMachine], None] = lambda _: None

    def find_cex(self, hypothesis: MealyMachine) -> Word | None:
        states = [state for state in hypothesis.states if not is_end(state)]
        hypothesis.compute_prefixes()
        self.sut.access = {state.prefix for state in states} | {()}
        print(f"{len(hypothesis.states)} states, {self.sut.runs} words", flush=True)
        self.save(hypothesis)
        for state in states:
            for probe in self.sut.probes:
                if word := self.compare(hypothesis, self.probed(state, probe)):
                    return word
        for _ in range(self.per_state):
            if word := self.compare(hypothesis, [self.walk(state) for state in states]):
                return word
        self.complete = time.monotonic() < self.until
        return None

    def compare(self, hypothesis: MealyMachine, words: list[Word]) -> Word | None:
        """Returns a word for which the hypothesis is wrong."""
        if time.monotonic() > self.until:
            return None
        self.sut.run_all(words)
        for word in words:
            self.num_queries += 1
            actual = self.sut.query(word)
            expected = hypothesis.compute_output_seq(hypothesis.initial_state, word)
            for index, output in enumerate(expected):
                if output != actual[index]:
                    found = word[: index + 1]
                    self.sut.access |= {found[:end] for end in range(index + 1)}
                    return found
        return None

    def probed(self, state: object, probe: Word) -> list[Word]:
        """Returns words that check the next state of each letter with the same probe."""
        return [
            (*state.prefix, letter, *probe)
            for letter, output in state.output_fun.items()
            if "CLOSE(" not in output and output != NOT_SENT
        ]

    def walk(self, state: object) -> Word:
        word = tuple(state.prefix)
        for _ in range(WALK_LEN):
            letter = self.random.choice(self.alphabet)
            for _ in range(8):
                output = state.output_fun[letter]
                if "CLOSE" not in output and output != NOT_SENT and letter != "wait":
                    break
                letter = self.random.choice(self.alphabet)
            word += (letter,)
            state = state.transitions[letter]
        return word


def is_end(state: object) -> bool:
    return all(output == CLOSED for output in state.output_fun.values())


def words_of(machine: MealyMachine) -> list[Word]:
    """Returns a word for every transition: the way to its state, then its letter."""
    machine.compute_prefixes()
    return [
        (*state.prefix, letter)
        for state in machine.states
        if not is_end(state)
        for letter in state.transitions
    ]


def learn(sut: Automaton, oracle: Walks) -> MealyMachine:
    alphabet = sorted(sut.alphabet)
    while True:
        try:
            machine = run_KV(
                alphabet, sut, oracle, "mealy", cache_and_non_det_check=False, print_level=0
            )
            # A single run may have been disturbed, so no transition rests on one.
            again = [
                word
                for word in words_of(machine)
                if min(sut.votes[one].total() for one in sut.paths(word)) < 2
            ]
            sut.repeat(again)
            for word in again:
                sut.query(word)
        except Contradiction as noise:
            print(f"again: {noise}", flush=True)
            continue
        return machine


def as_json(machine: MealyMachine, sut: Automaton, oracle: Walks, name: str, took: float) -> str:
    """Writes the machine, for each state the letters by output and next state."""
    machine.compute_prefixes()
    numbers = {state.state_id: index for index, state in enumerate(machine.states)}
    states = []
    for state in machine.states:
        groups: dict[tuple[str, int], list[str]] = {}
        for letter in sorted(state.transitions):
            to = numbers[state.transitions[letter].state_id]
            groups.setdefault((state.output_fun[letter], to), []).append(letter)
        states.append(
            {
                "number": numbers[state.state_id],
                "reached by": " ".join(state.prefix),
                "transitions": [
                    {"output": output, "to": to, "letters": " ".join(group)}
                    for (output, to), group in sorted(groups.items())
                ],
            }
        )
    content = {
        "peer": name,
        "words run": sut.runs,
        "walks": oracle.num_queries,
        "walks complete": oracle.complete,
        "noisy words": len(sut.noisy),
        "seconds": round(took),
        "states": states,
        "reasons": {key: sorted(reasons) for key, reasons in sorted(sut.reasons.items())},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["server", "client"])
    parser.add_argument("peer")
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--walks", type=int, default=60, help="walks from every state")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    kind = {"server": ServerUnderTest, "client": ClientUnderTest}[arguments.role]
    sut = kind(arguments.binary, arguments.peer)
    start = time.monotonic()
    oracle = Walks(sut, arguments.walks, arguments.seed, start + 60 * arguments.minutes)
    path = HERE / "machines" / f"{arguments.role}-{arguments.peer.replace('/', '-')}.json"
    path.parent.mkdir(exist_ok=True)

    def save(machine: MealyMachine) -> None:
        took = time.monotonic() - start
        path.write_text(as_json(machine, sut, oracle, arguments.peer, took))

    oracle.save = save
    machine = learn(sut, oracle)
    save(machine)
    sut.stop()
    print(f"{path.name}: {len(machine.states)} states, {sut.runs} words")


if __name__ == "__main__":
    main()
