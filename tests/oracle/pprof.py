#!/usr/bin/env python3
"""Prints a profile of pprof as one line of JSON: types, period, mappings, and samples with their functions.

    tests/oracle/pprof.py PROFILE.pb.gz

protobuf's own package decodes it, by a schema that is written down here from pprof's profile.proto: field names
and numbers. Fields that the schema does not know are an error. tests/oracle/setup.sh installs the package.
"""

import gzip
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "otlp"))

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402
from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: E402

# By message: name, number, type; a type in capitals is a message, and * is for repeated.
SCHEMA = {
    "ValueType": "type 1 int64, unit 2 int64",
    "Label": "key 1 int64, str 2 int64, num 3 int64, num_unit 4 int64",
    "Sample": "location_id 1 *uint64, value 2 *int64, label 3 *Label",
    "Mapping": "id 1 uint64, memory_start 2 uint64, memory_limit 3 uint64, file_offset 4 uint64, filename 5 int64, "
    "build_id 6 int64, has_functions 7 bool, has_filenames 8 bool, has_line_numbers 9 bool, "
    "has_inline_frames 10 bool",
    "Line": "function_id 1 uint64, line 2 int64, column 3 int64",
    "Location": "id 1 uint64, mapping_id 2 uint64, address 3 uint64, line 4 *Line, is_folded 5 bool",
    "Function": "id 1 uint64, name 2 int64, system_name 3 int64, filename 4 int64, start_line 5 int64",
    "Profile": "sample_type 1 *ValueType, sample 2 *Sample, mapping 3 *Mapping, location 4 *Location, "
    "function 5 *Function, string_table 6 *string, drop_frames 7 int64, keep_frames 8 int64, time_nanos 9 int64, "
    "duration_nanos 10 int64, period_type 11 ValueType, period 12 int64, comment 13 *int64, "
    "default_sample_type 14 int64",
}


def profile_class():
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools", syntax="proto3")
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        for field in fields.split(","):
            name, number, kind = field.split()
            label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            added = message.field.add(name=name, number=int(number), label=label)
            if kind[0].isupper():
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".perftools.{kind}"
            else:
                added.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.Profile"))


def require_known(message):
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in [value] if not field.is_repeated else value:
                require_known(each)


def by_id(messages):
    table = {each.id: each for each in messages}
    assert len(table) == len(messages) and 0 not in table, "ids are unique and not 0"
    return table


profile = profile_class()()
profile.ParseFromString(gzip.decompress(pathlib.Path(sys.argv[1]).read_bytes()))
require_known(profile)
text = profile.string_table
assert text[0] == ""
mappings, locations, functions = map(by_id, (profile.mapping, profile.location, profile.function))


def frames(location):
    """The functions of a location, the innermost first: name, file, line; module and address without any."""
    mapping = mappings[location.mapping_id]
    for line in location.line:
        function = functions[line.function_id]
        yield [text[function.name], text[function.filename], line.line]
    if not location.line:
        yield [f"{text[mapping.filename]}+{location.address:#x}", "", 0]


def sample(of):
    assert len(of.value) == len(profile.sample_type)
    stack = [frame for id in of.location_id for frame in frames(locations[id])]
    return {
        "stack": stack,
        "values": list(of.value),
        "labels": {text[label.key]: text[label.str] for label in of.label},
    }


def value_type(of):
    return [text[of.type], text[of.unit]]


def mapping(of):
    about = {"file": text[of.filename], "build_id": text[of.build_id]}
    names = ["has_functions", "has_filenames", "has_line_numbers", "has_inline_frames"]
    return about | {name: getattr(of, name) for name in names}


print(
    json.dumps(
        {
            "types": [value_type(of) for of in profile.sample_type],
            "period_type": value_type(profile.period_type),
            "period": profile.period,
            "time": profile.time_nanos,
            "duration": profile.duration_nanos,
            "mappings": [mapping(of) for of in profile.mapping],
            "samples": [sample(of) for of in profile.sample],
        }
    )
)
