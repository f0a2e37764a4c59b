package service

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/series"
	"kurabe/internal/reconcile"
	"kurabe/internal/store"
)

// instanceSampleEvery is how often the planner's server measures what the records say.
const instanceSampleEvery = 10 * time.Second

// sampleInstances appends the metrics of instances that follow from the records, while this
// server is the planner.
func (s *Service) sampleInstances(ctx context.Context, c *control.Control) error {
	ticker := time.NewTicker(instanceSampleEvery)
	defer ticker.Stop()
	for {
		if _, elected := s.elected(); elected && s.view.Healthy() == nil {
			now := time.Now()
			if err := s.series.Append(now, instanceSamples(s.view, c.Protection, now)); err != nil {
				s.log.Debug("metrics of instances not kept", logkey.Error, err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// instanceSamples are those of a moment, under the name of the server that is the primary.
func instanceSamples(view *store.View, protection func(kurabe.InstanceID) control.Protection, now time.Time) (list []series.Sample) {
	unprotected := map[string]time.Duration{}
	for _, f := range reconcile.Following(view) {
		if alone, known := f.Unprotected(now); known {
			unprotected[f.Name] = alone
		}
	}
	for _, i := range view.Instances() {
		if i.Spec == nil || i.Status == nil || i.Spec.Deleting != nil {
			continue
		}
		name, server := i.Spec.Name, i.ID
		if i.Group != nil && i.Group.Primary != "" {
			server = i.Group.Primary
		}
		if i.Spec.Cluster {
			name = kurabe.ServerName(name, server)
		}
		add := func(metric string, value time.Duration) {
			list = append(list, series.Sample{Value: value.Seconds(), Labels: series.NewLabels(catalog.Namespace, catalog.Kurabe, catalog.Metric, metric,
				catalog.Instance, name, catalog.Server, string(server), catalog.Engine, string(i.Spec.Engine), catalog.Role, catalog.RolePrimary)})
		}
		p := protection(i.ID)
		for _, each := range []struct {
			metric string
			at     time.Time
		}{{"BackupAge", p.Backup}, {"VerifiedRestoreAge", p.Verified}, {"LatestRestorableTimeAge", p.Restorable}} {
			if !each.at.IsZero() {
				add(each.metric, max(0, now.Sub(each.at)))
			}
		}
		if alone, known := unprotected[i.Spec.Name]; known {
			add("UnprotectedTime", alone)
		}
	}
	return list
}
