"""The contract of the store, executable: an engine that passes is an engine.

1. `CHECKS` of `promises` and `capabilities` are functions of a `Bench`, each named after what it proves.
2. `machine.build_machine` compares an engine with the reference under random work; it needs Hypothesis.
3. `crash.cut_everywhere` ends the process at its 1st, 2nd, 3rd ... step and looks at what is there afterwards.
4. `concurrency.CHECKS` let threads and processes work on one store at once.
5. A broken promise is a `BrokenPromise`; anything else that comes out of a suite is an error of the engine as well.
"""

from store.conformance.bench import Bench, BrokenPromise, Subject

__all__ = ["Bench", "BrokenPromise", "Subject"]
