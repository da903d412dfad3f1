// amconfig CONFIGURATION OBJECT [STRATEGY]: prints the configuration of Alertmanager that the operator makes of its own
// configuration and one AlertmanagerConfig; STRATEGY is the type of alertmanagerConfigMatcherStrategy.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/prometheus-operator/prometheus-operator/pkg/alertmanager"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"github.com/prometheus-operator/prometheus-operator/pkg/assets"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "amconfig:", err)
		os.Exit(1)
	}
}

func main() {
	base, err := os.ReadFile(os.Args[1])
	must(err)
	text, err := os.ReadFile(os.Args[2])
	must(err)
	var object monitoringv1alpha1.AlertmanagerConfig
	must(yaml.UnmarshalStrict(text, &object))
	var manager monitoringv1.Alertmanager
	manager.Namespace = "monitoring"
	if len(os.Args) > 3 {
		manager.Spec.AlertmanagerConfigMatcherStrategy.Type = monitoringv1.AlertmanagerConfigMatcherStrategyType(os.Args[3])
	}
	tokens := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: "alertscaler-tokens"},
		Data:       map[string][]byte{"alertmanager": []byte("secret"), "prometheus": []byte("secret")},
	}
	core := fake.NewSimpleClientset(&tokens).CoreV1()
	builder := alertmanager.NewConfigBuilder(slog.New(slog.NewTextHandler(os.Stderr, nil)), semver.MustParse("0.25.0"),
		assets.NewStoreBuilder(core, core), &manager)
	must(builder.InitializeFromRawConfiguration(base))
	key := object.Namespace + "/" + object.Name
	must(builder.AddAlertmanagerConfigs(context.Background(), map[string]*monitoringv1alpha1.AlertmanagerConfig{key: &object}))
	made, err := builder.MarshalJSON()
	must(err)
	os.Stdout.Write(made)
}
