"""A driver for external node groups of Cluster Autoscaler, on the real gRPC and Protocol Buffers libraries.

The messages of clusterautoscaler.cloudprovider.v1.externalgrpc are described here a second time, in these libraries' terms:
what they encode and accept is the truth that alertscaler has to match. Errors come as drivers in Go have them: most without a
status of their own, which is UNKNOWN. What is to go wrong is injected.
"""
import concurrent.futures
import dataclasses
import itertools
import os
import threading
import time

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")      # the tests start programs, which never use it
try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    grpc = None

PACKAGE = "clusterautoscaler.cloudprovider.v1.externalgrpc"
MESSAGES = {
    "Nothing": "",
    "Id": "1 string id",
    "NodeGroup": "1 string id, 2 int32 minSize, 3 int32 maxSize, 4 string debug",
    "NodeGroups": "1 NodeGroup* nodeGroups",
    "TargetSize": "1 int32 targetSize",
    "Delta": "1 int32 delta, 2 string id",
    "Node": "1 string providerID, 2 string name",
    "DeleteNodes": "1 Node* nodes, 2 string id",
    "ErrorInfo": "1 string errorCode, 2 string errorMessage, 3 int32 instanceErrorClass",
    "Status": "1 int32 instanceState, 2 ErrorInfo errorInfo",
    "Instance": "1 string id, 2 Status status",
    "Instances": "1 Instance* instances",
}
METHODS = {     # of what is asked for and answered
    "Refresh": ("Nothing", "Nothing"),
    "NodeGroups": ("Nothing", "NodeGroups"),
    "NodeGroupTargetSize": ("Id", "TargetSize"),
    "NodeGroupIncreaseSize": ("Delta", "Nothing"),
    "NodeGroupDeleteNodes": ("DeleteNodes", "Nothing"),
    "NodeGroupDecreaseTargetSize": ("Delta", "Nothing"),
    "NodeGroupNodes": ("Id", "Instances"),
}
RUNNING, CREATING, DELETING = 1, 2, 3


def missing():
    return None if grpc else "gRPC for Python is not installed: python3-grpcio, python3-protobuf"


def _make_messages():
    file = descriptor_pb2.FileDescriptorProto(name="driver.proto", package=PACKAGE, syntax="proto3")
    kinds = {"string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING, "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32}
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for words in filter(None, fields.split(", ")):
            number, kind, field_name = words.split()
            field = message.field.add(name=field_name, number=int(number), label=3 if kind.endswith("*") else 1)
            if kind in kinds:
                field.type = kinds[kind]
            else:
                field.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{PACKAGE}.{kind.rstrip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next call of this method. With apply, it is carried out all the same."""

    method: str
    status: str = ""
    message: str = "injected"
    apply: bool = False
    delay: float = 0.0


class Refused(Exception):
    """An error as a driver in Go returns it."""


class Group:
    """Instances are {provider id: state}; `room`: how many there can be, the rest never comes."""

    def __init__(self, name, size, least=0, most=10, room=100):
        self.name, self.size, self.least, self.most, self.room = name, size, least, most, room
        self.instances, self.errors, self.removed = {}, {}, []
        self._numbers = itertools.count(1)
        self.settle()

    def settle(self):
        while len(self.instances) < min(self.size, self.room):
            self.instances[f"test://{self.name}/{next(self._numbers)}"] = RUNNING


class Driver:
    """`tls`: (certificate, key, certificate of those who sign its clients'), as files."""

    def __init__(self, *groups, tls=None):
        self.groups = {group.name: group for group in groups}
        self.asked, self.faults, self.deadlines, self.metadata = [], [], [], []
        self._seen = {}         # the groups that the last Refresh found
        self._lock = threading.Lock()
        self._messages = _make_messages()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
            f"{PACKAGE}.CloudProvider", {name: self._make_handler(name, *kinds) for name, kinds in METHODS.items()})])
        if tls:
            certificate, key, clients = (file.read_bytes() for file in tls)
            credentials = grpc.ssl_server_credentials([(key, certificate)], clients, require_client_auth=True)
            self.url = f"https://localhost:{self._server.add_secure_port('127.0.0.1:0', credentials)}"
        else:
            self.url = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self):
        self._server.stop(None).wait()

    def inject(self, *faults, times=1):
        self.faults += list(faults) * times

    def count(self, method):
        return self.asked.count(method)

    def _make_handler(self, name, request, answer):
        return grpc.unary_unary_rpc_method_handler(
            lambda message, context: self._handle(name, message, context),
            request_deserializer=self._messages[request].FromString,
            response_serializer=self._messages[answer].SerializeToString)

    def _handle(self, name, message, context):
        with self._lock:
            self.asked.append(name)
            self.deadlines.append(context.time_remaining())
            self.metadata.append(dict(context.invocation_metadata()))
            fault = next((f for f in self.faults if f.method == name), None)
            if fault:
                self.faults.remove(fault)
        answer = None
        try:
            with self._lock:
                if not fault or fault.apply or not fault.status:
                    answer = getattr(self, f"_{name}")(message)
        except Refused as refused:
            context.abort(grpc.StatusCode.UNKNOWN, str(refused))
        if fault:
            time.sleep(fault.delay)
            if fault.status:
                context.abort(grpc.StatusCode[fault.status], fault.message)
        return answer

    # What is asked

    def _find(self, name):
        if name not in self._seen:
            raise Refused(f'NodeGroup "{name}", not found')
        return self._seen[name]

    def _Refresh(self, _):
        self._seen = dict(self.groups)
        return self._messages["Nothing"]()

    def _NodeGroups(self, _):
        kind = self._messages["NodeGroup"]
        return self._messages["NodeGroups"](nodeGroups=[
            kind(id=group.name, minSize=group.least, maxSize=group.most, debug=f"{group.name} ({group.least}:{group.most})")
            for group in self._seen.values()])

    def _NodeGroupTargetSize(self, message):
        return self._messages["TargetSize"](targetSize=self._find(message.id).size)

    def _NodeGroupNodes(self, message):
        group = self._find(message.id)
        answer = self._messages["Instances"]()
        for name, state in group.instances.items():
            code, words = group.errors.get(name, ("", ""))
            instance = answer.instances.add(id=name)
            instance.status.instanceState = state
            instance.status.errorInfo.errorCode, instance.status.errorInfo.errorMessage = code, words
        return answer

    def _NodeGroupIncreaseSize(self, message):
        group = self._find(message.id)
        if message.delta <= 0:
            raise Refused(f"size increase must be positive, have: {message.delta}")
        if group.size + message.delta > group.most:
            raise Refused(f"size increase is too large. current: {group.size} desired: {group.size + message.delta} max: {group.most}")
        group.size += message.delta
        group.settle()
        return self._messages["Nothing"]()

    def _NodeGroupDeleteNodes(self, message):
        group = self._find(message.id)
        if group.size - len(message.nodes) < group.least:
            raise Refused("min size reached, nodes will not be deleted")
        for node in message.nodes:
            if node.providerID not in group.instances:
                raise Refused(f'node "{node.providerID}" does not belong to node group "{group.name}"')
        for node in message.nodes:
            del group.instances[node.providerID]
            group.removed.append((node.providerID, node.name))
        group.size -= len(message.nodes)
        return self._messages["Nothing"]()

    def _NodeGroupDecreaseTargetSize(self, message):
        group = self._find(message.id)
        if message.delta >= 0:
            raise Refused(f"size decrease must be negative, have: {message.delta}")
        if group.size + message.delta < len(group.instances):
            raise Refused("attempt to delete existing nodes")
        group.size += message.delta
        return self._messages["Nothing"]()
