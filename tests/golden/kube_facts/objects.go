// objects.go COUNT SEED: random Nodes, Pods and PodDisruptionBudgets of Kubernetes' own types, in both forms that an API
// server sends. A line each, as JSON: the kind, the object, and its Protocol Buffers message in hexadecimal digits.
//
// How objects.jsonl was made, in a folder with this file alone:
//
//	go mod init objects && go get k8s.io/api@v0.37.2 && go run . 60 1 > objects.jsonl
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"

	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type object interface{ Marshal() ([]byte, error) }

var random *rand.Rand

func chance(of int) bool { return random.Intn(of) == 0 }

func pick(words ...string) string { return words[random.Intn(len(words))] }

func some[T any](max int, make func() T) []T {
	var list []T
	for count := random.Intn(max + 1); len(list) < count; {
		list = append(list, make())
	}
	return list
}

func labels(max int) map[string]string {
	if chance(4) {
		return nil
	}
	set := map[string]string{}
	for i := random.Intn(max + 1); i > 0; i-- {
		set[pick("app", "tier", "example.com/Team_1", "kubernetes.io/hostname", "zone")] = pick("", "db", "web", "A.b_c-1")
	}
	return set
}

func quantities(names ...string) core.ResourceList {
	if chance(3) {
		return nil
	}
	list := core.ResourceList{}
	for i := random.Intn(4); i > 0; i-- {
		list[core.ResourceName(pick(names...))] = resource.MustParse(pick("0", "1", "250m", "1500m", "0.1", "1Gi", "512Mi", "1.5Gi", "100k", "1e3", "7", "2T", "1u"))
	}
	return list
}

var requested = []string{"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi", "other"}

func when() meta.Time { return meta.Unix(1700000000+random.Int63n(1e8), 0) }

func metadata(kind string, number int) meta.ObjectMeta {
	m := meta.ObjectMeta{
		Name: fmt.Sprintf("%s-%d", kind, number), UID: "5f1a", ResourceVersion: strconv.Itoa(number), Generation: 3,
		CreationTimestamp: when(), Labels: labels(4), Finalizers: []string{"a/b"},
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{\"a\":[\"\\\\\\\"}\",\"\u00e4\u20ac\"]}\n"},
		ManagedFields: []meta.ManagedFieldsEntry{{Manager: "kubelet", Operation: "Update", APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: &meta.FieldsV1{Raw: []byte(`{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{}}}}`)}}},
	}
	if chance(8) {
		m.CreationTimestamp = meta.Time{}
	}
	return m
}

func node(number int) object {
	n := &core.Node{ObjectMeta: metadata("node", number)}
	for _, key := range []string{"cluster-autoscaler.kubernetes.io/scale-down-disabled", "alertscaler.io/scale-down-disabled", "atlassian.com/no-delete"} {
		if chance(5) {
			n.Annotations[key] = pick("true", "false", "because", "")
		}
	}
	if chance(4) {
		n.Annotations["alertscaler.io/drain"] = pick(`{"at":"2026-11-22T10:00:00Z","cordoned":true,"decision":"01HD","owner":"me"}`, `{}`, `x`)
	}
	n.Spec = core.NodeSpec{PodCIDR: "10.0.0.0/24", ProviderID: pick("", "aws:///z/i-1"), Unschedulable: chance(3)}
	n.Spec.Taints = some(3, func() core.Taint {
		t := core.Taint{Key: pick("dedicated", "ToBeDeletedByClusterAutoscaler", "atlassian.com/escalator", "alertscaler.io/draining"),
			Value: pick("", "x"), Effect: core.TaintEffect(pick("NoSchedule", "PreferNoSchedule", "NoExecute", "Other"))}
		if chance(2) {
			at := when()
			t.TimeAdded = &at
		}
		return t
	})
	names := append([]string{"pods", "attachable-volumes-x"}, requested...)
	n.Status = core.NodeStatus{Capacity: quantities(names...), Allocatable: quantities(names...), Phase: "Running",
		Addresses: []core.NodeAddress{{Type: "Hostname", Address: "n"}}, Images: []core.ContainerImage{{Names: []string{"i"}, SizeBytes: 1 << 40}}}
	n.Status.Conditions = some(3, func() core.NodeCondition {
		return core.NodeCondition{Type: core.NodeConditionType(pick("Ready", "DiskPressure")), Status: core.ConditionStatus(pick("True", "False", "Unknown")),
			LastHeartbeatTime: when(), LastTransitionTime: when(), Reason: "r", Message: "m"}
	})
	return n
}

func container() core.Container {
	c := core.Container{Name: "c", Image: "i", Command: []string{"a", "{\"}"}, Env: []core.EnvVar{{Name: "requests", Value: "1"}},
		Resources: core.ResourceRequirements{Requests: quantities(requested...), Limits: quantities(requested...)}}
	c.Ports = some(2, func() core.ContainerPort {
		return core.ContainerPort{HostPort: int32(random.Intn(3)), ContainerPort: int32(80 + random.Intn(2)), Protocol: core.Protocol(pick("", "TCP", "UDP")), HostIP: pick("", "10.0.0.1")}
	})
	if chance(3) {
		always := core.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	}
	return c
}

func selector() *meta.LabelSelector {
	if chance(4) {
		return nil
	}
	return &meta.LabelSelector{MatchLabels: labels(2), MatchExpressions: some(1, func() meta.LabelSelectorRequirement {
		return meta.LabelSelectorRequirement{Key: pick("app", "tier"), Operator: meta.LabelSelectorOperator(pick("In", "NotIn", "Exists", "DoesNotExist")),
			Values: some(2, func() string { return pick("db", "web") })}
	})}
}

func affinityTerm() core.PodAffinityTerm {
	t := core.PodAffinityTerm{LabelSelector: selector(), TopologyKey: pick("kubernetes.io/hostname", "kubernetes.io/hostname", "zone"),
		Namespaces: some(1, func() string { return pick("shop", "other") })}
	if chance(4) {
		t.NamespaceSelector = &meta.LabelSelector{MatchLabels: labels(1)}
	}
	return t
}

func affinity() *core.Affinity {
	a := &core.Affinity{}
	if chance(2) {
		a.NodeAffinity = &core.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []core.PreferredSchedulingTerm{{Weight: 3}}}
		if chance(2) {
			requirement := func() core.NodeSelectorRequirement {
				return core.NodeSelectorRequirement{Key: pick("zone", "metadata.name"), Operator: core.NodeSelectorOperator(pick("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "New")),
					Values: some(3, func() string { return pick("a", "b", "5") })}
			}
			a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &core.NodeSelector{NodeSelectorTerms: some(2, func() core.NodeSelectorTerm {
				return core.NodeSelectorTerm{MatchExpressions: some(2, requirement), MatchFields: some(1, requirement)}
			})}
		}
	}
	if chance(2) {
		a.PodAntiAffinity = &core.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: some(2, affinityTerm)}
	}
	if chance(3) {
		a.PodAffinity = &core.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: some(1, affinityTerm),
			PreferredDuringSchedulingIgnoredDuringExecution: []core.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: affinityTerm()}}}
	}
	return a
}

func volume() core.Volume {
	sources := []core.VolumeSource{
		{HostPath: &core.HostPathVolumeSource{Path: "/x"}},
		{EmptyDir: &core.EmptyDirVolumeSource{}},
		{EmptyDir: &core.EmptyDirVolumeSource{Medium: "Memory"}},
		{Secret: &core.SecretVolumeSource{SecretName: "s"}},
		{ConfigMap: &core.ConfigMapVolumeSource{}},
		{Projected: &core.ProjectedVolumeSource{}},
		{DownwardAPI: &core.DownwardAPIVolumeSource{}},
		{PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: "c"}},
		{CSI: &core.CSIVolumeSource{Driver: "d"}},
		{Ephemeral: &core.EphemeralVolumeSource{}},
	}
	return core.Volume{Name: pick("data", "tmp"), VolumeSource: sources[random.Intn(len(sources))]}
}

func pod(number int) object {
	p := &core.Pod{ObjectMeta: metadata("pod", number)}
	p.Namespace = pick("shop", "shop", "kube-system")
	for key, values := range map[string][]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict":               {"true", "false", ""},
		"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": {"data", "tmp, data"},
		"cluster-autoscaler.kubernetes.io/daemonset-pod":               {"true", "false"},
		"kubernetes.io/config.mirror":                                  {"x"},
	} {
		if chance(8) {
			p.Annotations[key] = pick(values...)
		}
	}
	p.OwnerReferences = some(2, func() meta.OwnerReference {
		controller := chance(2)
		return meta.OwnerReference{APIVersion: "apps/v1", Kind: pick("ReplicaSet", "ReplicaSet", "ReplicaSet", "DaemonSet", "Node"), Name: "o", UID: "u", Controller: &controller}
	})
	if chance(4) {
		at := when()
		p.DeletionTimestamp = &at
	}
	p.Spec = core.PodSpec{Volumes: some(2, volume), InitContainers: some(2, container), Containers: some(3, container), NodeSelector: labels(2),
		NodeName: pick("", "node-0", "node-3", "unknown"), HostNetwork: chance(4), SchedulerName: "s", Overhead: quantities("cpu", "memory")}
	p.Spec.Tolerations = some(3, func() core.Toleration {
		seconds := int64(300)
		return core.Toleration{Key: pick("", "dedicated"), Operator: core.TolerationOperator(pick("", "Exists", "Equal", "Lt")), Value: pick("", "x"),
			Effect: core.TaintEffect(pick("", "NoSchedule", "NoExecute", "PreferNoSchedule", "Other")), TolerationSeconds: &seconds}
	})
	p.Spec.TopologySpreadConstraints = some(1, func() core.TopologySpreadConstraint {
		return core.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: core.UnsatisfiableConstraintAction(pick("DoNotSchedule", "ScheduleAnyway")), LabelSelector: selector()}
	})
	p.Spec.ResourceClaims = some(1, func() core.PodResourceClaim { return core.PodResourceClaim{Name: "r"} })
	if chance(2) {
		p.Spec.Affinity = affinity()
	}
	if chance(3) {
		priority := int32(random.Intn(2000) - 1000)
		p.Spec.Priority = &priority
	}
	if chance(4) {
		p.Spec.Resources = &core.ResourceRequirements{Requests: quantities("cpu", "memory", "hugepages-2Mi")}
	}
	p.Status = core.PodStatus{Phase: core.PodPhase(pick("Pending", "Running", "Running", "Running", "Succeeded", "Failed")), NominatedNodeName: pick("", "", "node-1"), Message: "m", PodIP: "10.0.0.9"}
	p.Status.Conditions = some(2, func() core.PodCondition {
		return core.PodCondition{Type: core.PodConditionType(pick("PodScheduled", "Ready")), Status: core.ConditionStatus(pick("True", "False")),
			Reason: pick("Unschedulable", "SchedulingGated", ""), LastProbeTime: when(), LastTransitionTime: when()}
	})
	return p
}

func budget(number int) object {
	b := &policy.PodDisruptionBudget{ObjectMeta: metadata("budget", number)}
	b.Namespace = "shop"
	one := intstr.FromInt32(1)
	b.Spec = policy.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: selector()}
	b.Status = policy.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: int32(random.Intn(3)), CurrentHealthy: 7,
		DisruptedPods: map[string]meta.Time{"p": when()}}
	return b
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	seed, _ := strconv.ParseInt(os.Args[2], 10, 64)
	random = rand.New(rand.NewSource(seed))
	time.Local = time.UTC
	out := json.NewEncoder(os.Stdout)
	for i := 0; i < count; i++ {
		var made object
		kind := i % 6
		switch kind {
		case 0:
			made = node(i)
		case 1:
			made = budget(i)
		default:
			made = pod(i)
		}
		message, err := made.Marshal()
		if err != nil {
			panic(err)
		}
		names := []string{"nodes", "budgets", "pods"}
		if kind > 2 {
			kind = 2
		}
		if err := out.Encode(map[string]any{"kind": names[kind], "json": made, "protobuf": hex.EncodeToString(message)}); err != nil {
			panic(err)
		}
	}
}
