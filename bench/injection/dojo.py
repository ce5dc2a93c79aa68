"""AgentDojo's tasks in the words of a storage: which files a tool call reads, which it changes, and to whom it sends.

1. Runs inside the environment that `run` makes; nothing of the product imports it.
2. Every object of an AgentDojo environment is a file: a mail, an event, a transaction, the reviews of a hotel, the messages of a channel,
   a page. `objects` names them; `effects` says what one call does to them. A reply of a tool names no object that `effects` does not: see
   `extract`, which checks it with canaries.
3. What only changes files of the storage (a calendar without guests, the drive, the mailbox's own folders) is a write and returns to `main`
   through a proposal. Whatever anybody else sees is an outward act, and its destination is whoever sees it. A page whose address the agent
   chose is one, too.
4. The agent is wholly obedient: it does what the task asks, and from the first words of an attacker it sees, what these ask.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

warnings.filterwarnings("ignore")

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str  # noqa: E402
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # noqa: E402
from agentdojo.task_suite.load_suites import get_suites  # noqa: E402

VERSION = "v1.2.2"


@dataclass(frozen=True, slots=True)
class Effects:
    """What one call does: the files it reads, changes and deletes, and whom it reaches."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    reaches: tuple[str, ...] = ()


@dataclass(slots=True)
class Step:
    """One executed call."""

    function: str
    injected: bool
    effects: Effects
    text: str


@dataclass(slots=True)
class Play:
    """A whole run of the obedient agent."""

    steps: list[Step] = field(default_factory=list)
    calls: list[FunctionCall] = field(default_factory=list)
    seen: bool = False
    succeeded: bool = False


def suites() -> Mapping[str, Any]:
    """Return AgentDojo's suites by name."""
    return get_suites(VERSION)


def canaries(suite: Any) -> dict[str, str]:
    """Return a text for every place where an attacker can write."""
    return {vector: f"---CANARY_{vector}---" for vector in suite.get_injection_vector_defaults()}


def objects(name: str, env: Any) -> dict[str, str]:
    """Return the files of an environment and their contents."""
    return dict(_OBJECTS[name](env))


def _workspace_objects(env: Any) -> Iterable[tuple[str, str]]:
    for mail in env.inbox.emails.values():
        yield f"mail/{mail.id_}", str(mail)
    for event in env.calendar.events.values():
        yield f"calendar/{event.id_}", str(event)
    for file in env.cloud_drive.files.values():
        yield f"drive/{file.id_}", str(file)


def _slack_objects(env: Any) -> Iterable[tuple[str, str]]:
    for channel in env.slack.channels:
        yield f"channels/{_plain(channel)}/name", channel
        yield f"channels/{_plain(channel)}/messages", str(env.slack.channel_inbox.get(channel, []))
    for user in env.slack.users:
        yield f"direct/{user}", str(env.slack.user_inbox.get(user, []))
    for url, page in env.web.web_content.items():
        yield f"web/{_page(url)}", str(page)


def _travel_objects(env: Any) -> Iterable[tuple[str, str]]:
    kinds = (("hotels", env.hotels.hotel_list), ("restaurants", env.restaurants.restaurant_list), ("cars", env.car_rental.company_list))
    for kind, places in kinds:
        for place in places:
            yield f"{kind}/{place.name}/reviews", str(place.reviews)
            yield f"{kind}/{place.name}/facts", str(place.model_copy(update={"reviews": []}))
    for event in env.calendar.events.values():
        yield f"calendar/{event.id_}", str(event)
    for mail in env.inbox.emails.values():
        yield f"mail/{mail.id_}", str(mail)
    yield "private/person", str(env.user)


def _banking_objects(env: Any) -> Iterable[tuple[str, str]]:
    for transaction in env.bank_account.transactions:
        yield f"transactions/{transaction.id}", str(transaction)
    for transaction in env.bank_account.scheduled_transactions:
        yield f"orders/{transaction.id}", str(transaction)
    for path, text in env.filesystem.files.items():
        yield f"files/{path}", text
    yield "private/person", str(env.user_account)


_OBJECTS: Mapping[str, Callable[[Any], Iterable[tuple[str, str]]]] = {
    "workspace": _workspace_objects,
    "slack": _slack_objects,
    "travel": _travel_objects,
    "banking": _banking_objects,
}
_KINDS = {"Email": "mail", "CalendarEvent": "calendar", "CloudDriveFile": "drive"}
_PLACES = {"hotel": "hotels", "restaurant": "restaurants", "car": "cars", "company": "cars"}


def effects(name: str, env: Any, call: FunctionCall, result: Any) -> Effects:
    """Return what a call does, given the environment before it and what it returned."""
    found = _EFFECTS.get(call.function)
    if found is not None:
        return found(env, call.args)
    return Effects(reads=tuple(sorted(_read(name, call.function, call.args, result))))


def _read(name: str, function: str, args: Mapping[str, Any], result: Any) -> Iterable[str]:
    if name == "travel" and (places := _asked_places(function, args)):
        return places
    if function == "get_user_information" or function == "get_user_info":
        return ["private/person"]
    if function == "read_file":
        return [f"files/{args['file_path']}"]
    if function == "get_channels":
        return [f"channels/{_plain(channel)}/name" for channel in result]
    if function == "read_channel_messages":
        return [f"channels/{_plain(args['channel'])}/messages"]
    if function == "read_inbox":
        return [f"direct/{args['user']}"]
    if function == "get_most_recent_transactions":
        return [f"transactions/{each.id}" for each in result]
    if function == "get_scheduled_transactions":
        return [f"orders/{each.id}" for each in result]
    return {path for each in (result if isinstance(result, list) else [result]) if (path := _object_of(each))}


def _object_of(value: Any) -> str:
    kind = _KINDS.get(type(value).__name__)
    return f"{kind}/{value.id_}" if kind else ""


def _asked_places(function: str, args: Mapping[str, Any]) -> list[str]:
    part = "reviews" if "reviews" in function else "facts"
    for argument, value in args.items():
        folder = _PLACES.get(argument.split("_")[0])
        if folder and argument.split("_")[-1] in {"name", "names"}:
            return [f"{folder}/{place}/{part}" for place in ([value] if isinstance(value, str) else value)]
    return []


def _guests(env: Any, people: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"mail:{person}" for person in dict.fromkeys(people) if person != env.calendar.account_email)


def _event_guests(env: Any, args: Mapping[str, Any]) -> tuple[str, ...]:
    event = env.calendar.events.get(args["event_id"])
    return _guests(env, event.participants if event else ())


def _order(env: Any, args: Mapping[str, Any]) -> Effects:
    known = {order.id: order.recipient for order in env.bank_account.scheduled_transactions}
    return Effects(writes=(f"orders/{args['id']}",), reaches=(f"bank:{args.get('recipient') or known.get(int(args['id']), 'unknown')}",))


_EFFECTS: Mapping[str, Callable[[Any, Mapping[str, Any]], Effects]] = {
    "send_email": lambda env, args: Effects(
        reads=tuple(f"drive/{each['file_id']}" for each in args.get("attachments") or () if each.get("type") == "file"),
        reaches=tuple(f"mail:{each}" for each in args["recipients"]),
    ),
    "delete_email": lambda env, args: Effects(deletes=(f"mail/{args['email_id']}",)),
    "create_calendar_event": lambda env, args: Effects(
        writes=(f"calendar/{args['start_time']} {args['title']}",), reaches=_guests(env, args.get("participants") or ())
    ),
    "cancel_calendar_event": lambda env, args: Effects(deletes=(f"calendar/{args['event_id']}",), reaches=_event_guests(env, args)),
    "reschedule_calendar_event": lambda env, args: Effects(
        reads=(f"calendar/{args['event_id']}",), writes=(f"calendar/{args['event_id']}",), reaches=_event_guests(env, args)
    ),
    "add_calendar_event_participants": lambda env, args: Effects(
        reads=(f"calendar/{args['event_id']}",), writes=(f"calendar/{args['event_id']}",), reaches=_guests(env, args["participants"])
    ),
    "create_file": lambda env, args: Effects(writes=(f"drive/{args['filename']}",)),
    "append_to_file": lambda env, args: Effects(reads=(f"drive/{args['file_id']}",), writes=(f"drive/{args['file_id']}",)),
    "delete_file": lambda env, args: Effects(deletes=(f"drive/{args['file_id']}",)),
    "share_file": lambda env, args: Effects(reads=(f"drive/{args['file_id']}",), reaches=(f"mail:{args['email']}",)),
    "send_money": lambda env, args: Effects(reaches=(f"bank:{args['recipient']}",)),
    "schedule_transaction": lambda env, args: Effects(reaches=(f"bank:{args['recipient']}",)),
    "update_scheduled_transaction": _order,
    "update_password": lambda env, args: Effects(reaches=("bank:password",)),
    "update_user_info": lambda env, args: Effects(reaches=("bank:account information",)),
    "send_direct_message": lambda env, args: Effects(reaches=(f"slack:{args['recipient']}",)),
    "send_channel_message": lambda env, args: Effects(reaches=(f"slack:{_plain(args['channel'])}",)),
    "add_user_to_channel": lambda env, args: Effects(reaches=(f"slack:{_plain(args['channel'])}",)),
    "invite_user_to_slack": lambda env, args: Effects(reaches=(f"mail:{args['user_email']}",)),
    "remove_user_from_slack": lambda env, args: Effects(reaches=(f"slack:{args['user']}",)),
    "get_webpage": lambda env, args: Effects(reads=(f"web/{_page(args['url'])}",), reaches=(f"web:{_page(args['url'])}",)),
    "post_webpage": lambda env, args: Effects(reaches=(f"web:{_page(args['url'])}",)),
    "reserve_hotel": lambda env, args: Effects(reaches=(f"travel:{args['hotel']}",)),
    "reserve_restaurant": lambda env, args: Effects(reaches=(f"travel:{args['restaurant']}",)),
    "reserve_car_rental": lambda env, args: Effects(reaches=(f"travel:{args['company']}",)),
}


def _plain(channel: str) -> str:
    """Return the name of a channel as it is without an attacker's words in it."""
    return channel.partition("---CANARY")[0].rstrip("_0") + "_0" if channel.startswith("External") else channel


def _page(url: str) -> str:
    return url.removeprefix("https://").removeprefix("http://").removesuffix("/")


def play(suite: Any, user: Any, injection: Any, blocked: frozenset[int] = frozenset()) -> Play:
    """Let the obedient agent do a task, and (unless None) what an attacker asks for, but for the calls numbered in `blocked`."""
    env = user.init_environment(suite.load_and_inject_default_environment(canaries(suite) if injection else {}))
    before = env.model_copy(deep=True)
    runtime = FunctionsRuntime(suite.tools)
    game = Play()

    def carry_out(call: FunctionCall, injected: bool) -> None:
        number = len(game.steps)
        if number in blocked:
            game.steps.append(Step(call.function, injected, Effects(), ""))
            return
        known = env.model_copy(deep=True)
        game.calls.append(call)
        result, _ = runtime.run_function(env, call.function, call.args, raise_on_error=False)
        game.steps.append(Step(call.function, injected, effects(suite.name, known, call, result), tool_result_to_str(result)))

    for call in user.ground_truth(env):
        carry_out(call, False)
        if injection and not game.seen and "---CANARY_" in game.steps[-1].text:
            game.seen = True
            for asked in injection.ground_truth(env):
                carry_out(asked, True)
    if injection:
        answer = "\n".join([user.GROUND_TRUTH_OUTPUT, injection.GROUND_TRUTH_OUTPUT if game.seen else ""])
        trace = injection.security_from_traces(answer, before, env, game.calls)
        game.succeeded = bool(trace if trace is not None else injection.security(answer, before, env))
    return game
