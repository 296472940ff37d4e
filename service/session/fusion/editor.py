"""Finding nodes of a graph by what they are connected to, and putting others in their place."""

from collections.abc import Callable, Iterator, Sequence

from service.session.fusion.model_pb2 import AttributeProto, GraphProto, NodeProto


class Editor:
    """A graph, its branches with it. Names are those of tensors, unique in graph and branches."""

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self._look()
        self.has_changed = False

    def apply(self, fuse: "Callable[[Editor, NodeProto], Sequence[NodeProto]]") -> None:
        """Asks about every node what is to come in its place; nothing, if it stays.

        Who else makes a tensor that the new ones make goes, and who makes what nobody needs then.
        """
        while self._apply_once(fuse):
            pass

    def _apply_once(self, fuse: "Callable[[Editor, NodeProto], Sequence[NodeProto]]") -> bool:
        for graph in _all(self._graph):
            for node in graph.node:
                if nodes := fuse(self, node):
                    self._replace(graph, node, nodes)
                    return True
        return False

    def maker(self, name: str, op_type: str) -> NodeProto | None:
        """The node that makes a tensor, if it is of that type."""
        node = self._makers.get(name)
        return node if node is not None and node.op_type == op_type else None

    def users(self, name: str, op_type: str) -> list[NodeProto]:
        """The nodes of that type that read a tensor, in this graph or in a branch."""
        return [node for node in self._users.get(name, []) if node.op_type == op_type]

    def only_user(self, name: str, op_type: str, besides: str = "") -> NodeProto | None:
        """The one node that reads a tensor, which is no output, if it is of that type.

        besides: a type of nodes that may read it too.
        """
        users = [node for node in self._users.get(name, []) if node.op_type != besides]
        if len(users) != 1 or name in self._outputs or users[0].op_type != op_type:
            return None
        return users[0]

    def is_used(self, name: str, *besides: NodeProto) -> bool:
        """Whether a tensor is an output, or read by other nodes than these."""
        others = [node for node in self._users.get(name, []) if node not in besides]
        return name in self._outputs or bool(others)

    def shape(self, name: str) -> list[int]:
        """The sizes of an input's or output's axes, 0 for those that vary; else nothing."""
        for value in [*self._graph.input, *self._graph.output]:
            if value.name == name:
                return [axis.dim_value for axis in value.type.tensor_type.shape.dim]
        return []

    def _look(self) -> None:
        self._makers: dict[str, NodeProto] = {}
        self._users: dict[str, list[NodeProto]] = {}
        self._outputs: set[str] = set()
        for graph in _all(self._graph):
            self._outputs.update(output.name for output in graph.output)
            for node in graph.node:
                self._makers.update((name, node) for name in node.output if name)
                for name in filter(None, node.input):
                    self._users.setdefault(name, []).append(node)

    def _replace(self, graph: GraphProto, old: NodeProto, new: Sequence[NodeProto]) -> None:
        made = {name for node in new for name in node.output if name}
        place = list(graph.node).index(old)
        # The old one stays where others read it too, and is pruned where nobody does.
        before, behind = graph.node[: place + 1], graph.node[place + 1 :]
        kept = [
            [node for node in nodes if made.isdisjoint(node.output)] for nodes in (before, behind)
        ]
        del graph.node[:]
        graph.node.extend([*kept[0], *new, *kept[1]])
        self.has_changed = True
        self._prune()

    def _prune(self) -> None:
        self._look()
        while idle := [
            (graph, node)
            for graph in _all(self._graph)
            for node in graph.node
            if self._outputs.isdisjoint(node.output) and self._users.keys().isdisjoint(node.output)
        ]:
            for graph, node in idle:
                graph.node.remove(node)
            self._look()
        constants = self._graph.initializer
        for index in reversed(range(len(constants))):
            if not self.is_used(constants[index].name):
                del constants[index]


def attributes(node: NodeProto) -> dict[str, object]:
    """Its numbers by name, and their names for what else there is: a graph, a text."""
    values: dict[str, object] = {}
    for each in node.attribute:
        if each.type == AttributeProto.INT:
            values[each.name] = each.i
        elif each.type == AttributeProto.FLOAT:
            values[each.name] = each.f
        elif each.type == AttributeProto.INTS:
            values[each.name] = list(each.ints)
        else:
            values[each.name] = each.name
    return values


def node(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    domain: str,
    *attributes: AttributeProto,
) -> NodeProto:
    """A new node, named after its first output that has a name."""
    named = next(filter(None, outputs))
    return NodeProto(
        op_type=op_type,
        domain=domain,
        input=inputs,
        output=outputs,
        name=f"{op_type}.{named}",
        attribute=attributes,
    )


def _all(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and all branches in it."""
    yield graph
    for each in graph.node:
        for attribute in each.attribute:
            if attribute.HasField("g"):
                yield from _all(attribute.g)
