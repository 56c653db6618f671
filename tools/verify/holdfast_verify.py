#!/usr/bin/env python3
"""Verifies exported agent-session journals. One file, standard library only, Python 3.8 or later.

    holdfast_verify.py [options] FILE...        "-" reads standard input

A journal is the hash chain of one session's records. Each record's content_hash is the SHA-256 of the canonical JSON
(RFC 8785) of its event, its seq and the content_hash before it. This program shares no code with the server that wrote the
journal: it has a canonicaliser of its own, recomputes every hash and checks every link.

Input is an export in proto3 JSON with the contract's own field names (snake_case), in one of three forms: JSON lines of
LogRecords, a JSON array of them, or a JSON object that has them under "records". A forked session's export begins with the
records that it shares with its parent, so it is a plain chain from seq 1.

What is hashed is the JSON as it is given. A record is therefore refused ("unreadable") where its JSON could say one thing to
this program and another to a reader: a key that occurs twice, a number that its reader would round, a name or a type that is
not the contract's, a default value that the pinned form leaves out.

What the chain cannot tell: the fence of a record is outside the hash, and a journal that was cut short is intact as far as it
goes. Give --head-seq or --head-hash, as the session or a later export has them, to find that out.

Exit status: 0 every journal is intact, 1 one is broken, 2 an input cannot be read as a journal (or the command line is wrong).
"""

import argparse
import base64
import binascii
import calendar
import hashlib
import json
import re
import sys
from decimal import Decimal

INTACT, BROKEN, UNREADABLE = 0, 1, 2
FAULTS_SHOWN_MAX = 20


class NotAJournal(Exception):
    """The input as a whole cannot be read."""


class Refused(Exception):
    """A record that cannot be read, or whose JSON is not in the pinned form."""


# --- JSON, read so that nothing in it is lost -------------------------------------------------------------------------------


class Pairs(list):
    """A JSON object as the pairs of its text: a dict would drop a key that occurs twice."""


class Number(str):
    """A JSON number as its text: a float would round it."""


def refuse_constant(name):
    raise ValueError("%s is no JSON" % name)


def parse_json(text):
    return json.loads(
        text,
        object_pairs_hook=Pairs,
        parse_float=Number,
        parse_int=Number,
        parse_constant=refuse_constant,
    )


def as_dict(value, where):
    """The object `value` as a dict. Refuses anything else, and a key that occurs twice."""
    if not isinstance(value, Pairs):
        raise Refused("%s must be an object" % where)
    members = dict(value)
    if len(members) != len(value):
        raise Refused("%s has a key twice" % where)
    for key in members:
        check_text(key, where)
    return members


def check_text(text, where):
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise Refused("%s holds a lone surrogate" % where)


# --- Canonical JSON (RFC 8785) ----------------------------------------------------------------------------------------------

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
ESCAPED = re.compile('["\\\\\x00-\x1f]')


def escape(match):
    char = match.group()
    return ESCAPES.get(char) or "\\u%04x" % ord(char)


def canonical_text(text):
    return '"' + ESCAPED.sub(escape, text) + '"'


def canonical_number(value):
    """A finite float in ECMAScript's form. Both languages find the same shortest digits; they place them differently."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text)
    point = len(text) + exponent  # value = 0.text * 10 ** point
    if 0 < point <= 21:
        body = text.ljust(point, "0") if len(text) <= point else text[:point] + "." + text[point:]
    elif -6 < point <= 0:
        body = "0." + "0" * -point + text
    else:
        mantissa = text if len(text) == 1 else text[0] + "." + text[1:]
        body = "%se%+d" % (mantissa, point - 1)
    return "-" + body if sign else body


def utf16_units(key):
    return key.encode("utf-16-be")


def canonical_members(members):
    """An object of texts that are canonical already, by key."""
    ordered = sorted(members, key=utf16_units)
    return "{" + ",".join(canonical_text(key) + ":" + members[key] for key in ordered) + "}"


def canonical_value(value, where):
    """Any JSON value: what a Struct may hold."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, Number):
        return canonical_double(value, where)
    if isinstance(value, str):
        check_text(value, where)
        return canonical_text(value)
    if isinstance(value, Pairs):
        return canonical_struct(value, where)
    return "[" + ",".join(canonical_value(item, where) for item in value) + "]"


def canonical_struct(value, where):
    return canonical_members({key: canonical_value(held, where) for key, held in as_dict(value, where).items()})


def canonical_double(token, where):
    """A number token, which must say exactly what its canonical form says, or its reader would see another value."""
    value = float(token)
    if value in (float("inf"), float("-inf")):
        raise Refused("%s holds a number that is too large" % where)
    text = canonical_number(value)
    try:
        exact = Decimal(token) == Decimal(text) and not (value == 0 and token.startswith("-"))
    except ArithmeticError:
        # Beyond what Decimal holds, so beyond what a double is exact in.
        exact = False
    if not exact:
        raise Refused("%s holds a number that is rounded when it is read: %s" % (where, text))
    return text


# --- The contract's messages ------------------------------------------------------------------------------------------------

INT64_TEXT = re.compile(r"-?[1-9][0-9]{0,18}\Z|0\Z", re.ASCII)
INT32_TEXT = re.compile(r"-?[1-9][0-9]{0,9}\Z", re.ASCII)
TIMESTAMP_TEXT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{3}|[0-9]{6}|[0-9]{9}))?Z\Z", re.ASCII
)


def string(value, where):
    if not isinstance(value, str) or isinstance(value, Number):
        raise Refused("%s must be a string" % where)
    check_text(value, where)
    return canonical_text(value)


def populated_string(value, where):
    text = string(value, where)
    if value == "":
        raise Refused("%s is empty and must be left out" % where)
    return text


def any_int64(value, where):
    text = string(value, where)
    if not INT64_TEXT.match(value) or not -(2**63) <= int(value) < 2**63:
        raise Refused("%s must be a 64-bit integer in a string" % where)
    return text


def int64(value, where):
    text = any_int64(value, where)
    if value == "0":
        raise Refused("%s is 0 and must be left out" % where)
    return text


def int32(value, where):
    if not isinstance(value, Number) or not INT32_TEXT.match(value) or not -(2**31) <= int(value) < 2**31:
        raise Refused("%s must be a 32-bit integer other than 0" % where)
    return str(value)


def boolean(value, where):
    if value is not True:
        raise Refused("%s must be true or left out" % where)
    return "true"


def any_bytes(value, where):
    text = string(value, where)
    try:
        exact = base64.b64encode(base64.b64decode(value, validate=True)).decode("ascii") == value
    except (binascii.Error, ValueError):
        exact = False
    if not exact:
        raise Refused("%s must be standard base64 with padding" % where)
    return text


def populated_bytes(value, where):
    text = any_bytes(value, where)
    if value == "":
        raise Refused("%s is empty and must be left out" % where)
    return text


def timestamp(value, where):
    text = string(value, where)
    match = TIMESTAMP_TEXT.match(value)
    if not match or not is_time(*map(int, match.groups()[:6])) or (match.group(7) or "1").endswith("000"):
        raise Refused("%s must be a time in UTC with 0, 3, 6 or 9 fraction digits, as few as will do" % where)
    return text


def is_time(year, month, day, hour, minute, second):
    if year < 1 or not 1 <= month <= 12 or hour > 23 or minute > 59 or second > 59:
        return False
    return 1 <= day <= calendar.monthrange(year, month)[1]


def enum(*names):
    """An enum by its names, the unspecified one first; a number that has no name stands for itself."""

    def check(value, where):
        if isinstance(value, Number):
            text = int32(value, where)
            if 0 < int(value) < len(names):
                raise Refused("%s must be given by its name" % where)
            return text
        text = string(value, where)
        if value not in names[1:]:
            raise Refused("%s must be one of %s" % (where, ", ".join(names[1:])))
        return text

    return check


def list_of(item):
    def check(value, where):
        if not isinstance(value, list) or isinstance(value, Pairs) or not value:
            raise Refused("%s must be a list that is not empty" % where)
        return "[" + ",".join(item(held, "%s[%d]" % (where, index)) for index, held in enumerate(value)) + "]"

    return check


def string_map(value, where):
    members = as_dict(value, where)
    if not members:
        raise Refused("%s is empty and must be left out" % where)
    return canonical_members({key: string(held, where) for key, held in members.items()})


class Message:
    """A message: its fields by name, and its oneofs, of each of which one field may be there."""

    def __init__(self, fields=None, oneofs=()):
        self.fields = fields or {}
        self.oneofs = oneofs

    def __call__(self, value, where):
        members = as_dict(value, where)
        for oneof in self.oneofs:
            present = [name for name in oneof if name in members]
            if len(present) > 1:
                raise Refused("%s has both %s and %s" % (where, present[0], present[1]))
        texts = {}
        for name, held in members.items():
            check = self.fields.get(name)
            if check is None:
                raise Refused("%s has a field that the contract does not have: %s" % (where, canonical_text(name)))
            texts[name] = check(held, where + "." + name)
        return canonical_members(texts)


MEDIATION = enum(
    "MEDIATION_UNSPECIFIED", "MEDIATION_IN_HARNESS_REPORTED", "MEDIATION_CONTROLLER_MEDIATED", "MEDIATION_REQUIRES_APPROVAL"
)
EVENT_KIND = enum(
    *("EVENT_KIND_UNSPECIFIED", "EVENT_INPUT", "EVENT_MODEL_CALL", "EVENT_OUTPUT", "EVENT_TOOL_CALL", "EVENT_TOOL_RESULT"),
    *("EVENT_APPROVAL_REQUEST", "EVENT_APPROVAL_RESULT", "EVENT_USAGE", "EVENT_LIFECYCLE", "EVENT_END", "EVENT_ERROR"),
    *("EVENT_EXECUTION_START", "EVENT_PARKED"),
)
LIFECYCLE_KIND = enum(
    *("LIFECYCLE_UNSPECIFIED", "LIFECYCLE_SUSPEND", "LIFECYCLE_RESUME", "LIFECYCLE_FORK", "LIFECYCLE_BASELINE"),
    *("LIFECYCLE_CANCEL", "LIFECYCLE_DELETE"),
)
MODE = enum("MODE_UNSPECIFIED", "MODE_AUTO", "MODE_NONE", "MODE_REQUIRED")
CODE = enum("CODE_UNSPECIFIED", "APPROVAL_DENIED", "EXECUTOR_ERROR")


def strings(*names):
    return {name: populated_string for name in names}


PART = Message(oneofs=[("text", "file", "data", "reasoning", "tool_call", "tool_result")])
MESSAGE = Message({**strings("role"), "parts": list_of(PART)})
FILE_PART = Message({**strings("mime", "name", "digest"), "bytes": any_bytes, "uri": string}, [("bytes", "uri")])
REASONING_PART = Message(
    {
        **strings("provider", "model_id", "item_id", "validity_scope", "opaque_digest"),
        "opaque_bytes": any_bytes,
        "opaque_uri": string,
        "summary": list_of(PART),
        "ordinal": int32,
    },
    [("opaque_bytes", "opaque_uri")],
)
TOOL_CALL = Message({**strings("id", "tool", "idempotency_key"), "args": canonical_struct, "mediation": MEDIATION})
TOOL_RESULT = Message(
    {
        **strings("id", "output_uri", "error", "output_digest"),
        "output": canonical_struct,
        "is_error": boolean,
        "content": list_of(PART),
        "code": CODE,
        "approval_request_seq": int64,
        "approval_decision_seq": int64,
    }
)
PART.fields.update(
    text=Message(strings("text")),
    file=FILE_PART,
    data=Message({"data": canonical_struct}),
    reasoning=REASONING_PART,
    tool_call=TOOL_CALL,
    tool_result=TOOL_RESULT,
)
TOOL_DEFINITION = Message({**strings("name", "description"), "input_schema": canonical_struct})
MODEL_CALL = Message(
    {
        **strings("model", "input_hash", "id"),
        "params": string_map,
        "messages": list_of(MESSAGE),
        "tools": list_of(TOOL_DEFINITION),
        "tool_choice": Message({"mode": MODE, **strings("name")}),
    }
)
ERROR = Message({"code": int32, **strings("description")})
BODIES = {
    "message": MESSAGE,
    "model": MODEL_CALL,
    "tool": TOOL_CALL,
    "result": TOOL_RESULT,
    "approval": Message(strings("tool_call_id", "reason")),
    "approval_result": Message({**strings("tool_call_id", "reason"), "approved": boolean, "request_seq": int64}),
    "usage": Message({**strings("model"), "input_tokens": int64, "output_tokens": int64, "reasoning_tokens": int64}),
    "lifecycle": Message(
        {
            **strings("detail", "snapshot_local", "snapshot_external_uri"),
            "kind": LIFECYCLE_KIND,
            "snapshot_memory": boolean,
            "snapshot_sealed": boolean,
        }
    ),
    "end": Message({**strings("state"), "error": ERROR}),
    "error": ERROR,
    "execution_start": Message(
        {
            **strings("harness", "harness_version"),
            "config": populated_bytes,
            "resume_from_seq": int64,
            "input_count": any_int64,
        }
    ),
    "parked": Message({**strings("execution_id", "tool_call_id"), "request_seq": int64}),
}
EVENT = Message(
    {
        **BODIES,
        **strings("execution_id"),
        "ts": timestamp,
        "schema_version": int32,
        "kind": EVENT_KIND,
        "actor": Message(strings("principal", "issuer", "subject")),
    },
    [tuple(BODIES)],
)


# --- The chain --------------------------------------------------------------------------------------------------------------


class Record:
    """A LogRecord's envelope and the canonical text of its event."""

    FIELDS = ("seq", "prev_hash", "content_hash", "fence", "event")

    def __init__(self, value):
        members = as_dict(value, "record")
        for name in members:
            if name not in self.FIELDS:
                raise Refused("record has a field that the contract does not have: %s" % canonical_text(name))
        for name, check in (("seq", any_int64), ("fence", any_int64), ("prev_hash", string), ("content_hash", string)):
            if name in members:
                check(members[name], "record." + name)
        if "event" not in members:
            raise Refused("record has no event")
        self.seq = int(members.get("seq", "0"))
        # An exporter may leave the first record's empty prev_hash out, as the JSON mapping does, or write it.
        self.prev_hash = members.get("prev_hash", "")
        self.content_hash = members.get("content_hash", "")
        self.event = EVENT(members["event"], "event")

    def hash(self):
        envelope = {"event": self.event, "prev_hash": canonical_text(self.prev_hash), "seq": '"%d"' % self.seq}
        return hashlib.sha256(canonical_members(envelope).encode("utf-8")).hexdigest()


class Chain:
    """Checks records in order and keeps what is wrong. After a fault it goes on from what the record says of itself."""

    def __init__(self):
        self.records = 0
        self.faults = []
        self.seq = 0
        self.hash = ""
        self.blind = False

    def fault(self, kind, expected, found):
        self.faults.append({"record": self.records, "seq": self.seq, "kind": kind, "expected": expected, "found": found})

    def push(self, value):
        self.records += 1
        self.seq += 1
        try:
            record = Record(value)
        except (Refused, RecursionError) as refusal:
            found = str(refusal) if isinstance(refusal, Refused) else "event is nested too deeply"
            self.fault("unreadable", "a record in the pinned form", found)
            # Its hash is not known, so the next record's link cannot be judged.
            self.blind = True
            return
        if record.seq != self.seq:
            self.fault("seq", str(self.seq), str(record.seq))
        if record.prev_hash != self.hash and not self.blind:
            self.fault("prev-hash", self.hash, record.prev_hash)
        computed = record.hash()
        if record.content_hash != computed:
            self.fault("content-hash", computed, record.content_hash)
        self.seq = record.seq
        self.hash = record.content_hash
        self.blind = False

    def finish(self, head_seq, head_hash):
        if head_seq is not None and head_seq != self.seq:
            self.fault("head", str(head_seq), str(self.seq))
        if head_hash is not None and head_hash != self.hash:
            self.fault("head", head_hash, self.hash)


# --- The input --------------------------------------------------------------------------------------------------------------


def read_text(path):
    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
    except OSError as error:
        raise NotAJournal("it cannot be opened: %s" % error.strerror)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise NotAJournal("it is no UTF-8")


def records_of(text):
    """The records of an export, in whichever of its three forms."""
    try:
        whole = parse_json(text)
    except RecursionError:
        raise NotAJournal("its JSON is nested too deeply")
    except ValueError:
        return lines_of(text)
    if isinstance(whole, Pairs):
        lists = [held for key, held in whole if key == "records"]
        if len(lists) > 1:
            raise NotAJournal('it has "records" twice')
        if not lists:
            return [whole]
        whole = lists[0]
    if not isinstance(whole, list) or isinstance(whole, Pairs):
        raise NotAJournal("it is no list of records")
    return whole


def lines_of(text):
    # Only a line feed ends a line; a string may hold the other separators that Python splits at.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield parse_json(line)
        except RecursionError:
            raise NotAJournal("line %d is nested too deeply" % number)
        except ValueError:
            raise NotAJournal("line %d is no JSON" % number)


def verify(path, head_seq, head_hash):
    """The report on one journal."""
    chain = Chain()
    try:
        for record in records_of(read_text(path)):
            chain.push(record)
        if chain.records == 0 and head_seq is None and head_hash is None:
            raise NotAJournal("it holds no record")
    except NotAJournal as error:
        return {"file": path, "verdict": "unreadable", "reason": str(error), "records": chain.records, "faults": chain.faults}
    chain.finish(head_seq, head_hash)
    verdict = "broken" if chain.faults else "intact"
    head = {"seq": chain.seq, "hash": chain.hash}
    return {"file": path, "verdict": verdict, "records": chain.records, "head": head, "faults": chain.faults}


def shown(text):
    """Text of the input as it may go to a terminal: short, and without control characters."""
    text = text if len(text) <= 200 else text[:200] + "…"
    return "".join(char if char.isprintable() else "\\u%04x" % ord(char) for char in text) or '""'


def print_report(report, out):
    name = "standard input" if report["file"] == "-" else report["file"]
    if report["verdict"] == "unreadable":
        print("%s: UNREADABLE: %s" % (name, report["reason"]), file=out)
    elif report["verdict"] == "broken":
        print("%s: BROKEN: %s" % (name, count(len(report["faults"]), "fault")), file=out)
    else:
        head = report["head"]
        print("%s: intact: %s, head %d %s" % (name, count(report["records"], "record"), head["seq"], head["hash"]), file=out)
    for fault in report["faults"][:FAULTS_SHOWN_MAX]:
        place = "end" if fault["kind"] == "head" else "record %d (seq %d)" % (fault["record"], fault["seq"])
        expected, found = shown(fault["expected"]), shown(fault["found"])
        print("  %s: %s: expected %s, found %s" % (place, fault["kind"], expected, found), file=out)
    if len(report["faults"]) > FAULTS_SHOWN_MAX:
        print("  and %s more" % count(len(report["faults"]) - FAULTS_SHOWN_MAX, "fault"), file=out)


def count(number, name):
    return "%d %s%s" % (number, name, "" if number == 1 else "s")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="holdfast_verify.py", description="Verify exported agent-session journals.", epilog="Exit: 0 intact, 1 broken, 2 unreadable."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help='an export; "-" is standard input')
    parser.add_argument("--head-seq", type=int, metavar="N", help="the seq that the last record must have")
    parser.add_argument("--head-hash", metavar="H", help="the content_hash that the last record must have")
    parser.add_argument("--json", action="store_true", help="print one JSON object a file instead of text")
    options = parser.parse_args(arguments)
    if len(options.files) > 1 and (options.head_seq is not None or options.head_hash is not None):
        parser.error("--head-seq and --head-hash are about one journal; give one file")
    # Whatever a journal holds, telling about it must not fail on a terminal that cannot show it.
    sys.stdout.reconfigure(errors="backslashreplace")
    status = INTACT
    for path in options.files:
        report = verify(path, options.head_seq, options.head_hash)
        if options.json:
            print(json.dumps(report))
        else:
            print_report(report, sys.stdout)
        status = max(status, {"intact": INTACT, "broken": BROKEN, "unreadable": UNREADABLE}[report["verdict"]])
    return status


if __name__ == "__main__":
    sys.exit(main())
