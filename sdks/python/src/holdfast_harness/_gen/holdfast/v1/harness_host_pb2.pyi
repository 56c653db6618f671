from holdfast_harness._gen.holdfast.v1 import harness_wire_pb2 as _harness_wire_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
