"""Starts an order over gRPC, pays it, and waits for its end: `python client.py API-KEY NUMBER`."""

import json
import sys

import grpc
from google.protobuf.duration_pb2 import Duration

from oncekey.api.grpc.oncekey_pb2 import GetExecutionRequest, ResolveRequest, StartRequest
from oncekey.api.grpc.oncekey_pb2_grpc import PromisesStub, WorkflowsStub

_, api_key, number = sys.argv
caller = (("authorization", f"Bearer {api_key}"),)

with grpc.insecure_channel("127.0.0.1:8701") as channel:
    workflows, promises = WorkflowsStub(channel), PromisesStub(channel)

    # Safe to retry: the same key, name and input are the same workflow.
    order = StartRequest(name="order", input_json=number.encode(), key=f"order:{number}")
    started = workflows.Start(order, metadata=caller)

    payment = ResolveRequest(
        key=f"payment:{number}", value_json=b"499", request_key=f"paid:{number}", park=True
    )
    promises.Resolve(payment, metadata=caller)

    # A long poll: it answers when the workflow is over, or after 30 seconds as it is then.
    waiting = GetExecutionRequest(id=started.execution.id, wait=Duration(seconds=30))
    ended = workflows.Get(waiting, metadata=caller, timeout=35)

print("created" if started.created else "found", ended.id, json.loads(ended.result_json))
