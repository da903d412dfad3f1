"""docs/tutorial-spot.md, line by line: two Auto Scaling groups of moto's server, whose instances become nodes of the real control
plane, with its scheduler and KWOK's kubelets."""
import pytest

from harness import control_plane as kubernetes
from harness import kwok, moto
from harness.fleet import Fleet
from harness.wait import eventually
from test_aws_moto import documented_policy
from test_pools import cluster, plane  # noqa: F401
from test_tutorials import Machine

missing = kubernetes.missing() or kwok.missing() or moto.missing()
pytestmark = [pytest.mark.kubernetes, pytest.mark.since(21, "the API server has policy/v1"),
              pytest.mark.skipif(bool(missing), reason=str(missing))]

AMOUNTS = {"cpu": "7900m", "memory": "30Gi", "pods": "110"}


class Group:
    """An Auto Scaling group of moto, for Fleet."""

    def __init__(self, aws, name):
        self.aws, self.name = aws, name

    @property
    def instances(self):
        return self.aws.group(self.name)[1]


@pytest.mark.seconds(300)
def test_spot_nodes_come_first(plane, cluster, started, tmp_path):  # noqa: F811
    aws = started(moto.Moto(tmp_path)).start()
    key = aws.make_user("alertscaler", documented_policy())
    aws.check_signatures()
    aws.make_group("spot", 0, least=0, most=3)
    aws.make_group("on-demand", 1, most=20)
    groups = [Group(aws, "spot"), Group(aws, "on-demand")]
    cluster.groups = {group.name: group for group in groups}
    cluster.fleet = started(Fleet(plane, groups, {group.name: AMOUNTS for group in groups},
                                  {group.name: {"life": group.name} for group in groups}))
    eventually(lambda: len(cluster.ready_nodes()) == 1, 60, what="the first node is Ready")
    machine = Machine(plane, tmp_path, {"region: eu-west-1": f"region: {moto.REGION}, endpoint: '{aws.url}'"},
                      {"AWS_ACCESS_KEY_ID": key.id, "AWS_SECRET_ACCESS_KEY": key.secret})
    machine.write_files("spot")
    machine.run("spot")
    assert len(groups[0].instances) == 3 and len(groups[1].instances) == 1
