package agent

import (
	"context"
	"reflect"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// reportRetry is how soon a report that could not be delivered is tried again.
const reportRetry = time.Second

// report tells the planner what is seen, when it differs from what it was told.
func (w *worker) report(ctx context.Context, a kurabe.Assignment, o engine.Observation, step string, done bool) {
	r := kurabe.InstanceReport{
		Host: w.agent.Host, Instance: w.id, Generation: a.Generation, Done: done, Step: step, Failure: w.failure,
		Running: o.Running, Serving: o.Serving(), PID: o.PID, Boot: o.Boot, StartedAt: o.StartedAt.UTC(), EngineVersion: a.Version,
		Absent:  done && a.Goal == kurabe.GoalAbsent,
		Crashes: o.Applied.Crashes, LastCrash: o.Applied.LastCrash, OOMKills: o.OOMKills,
		UsedBytes: w.used, CertificateExpiresAt: o.CertificateExpires,
	}
	if w.agent.Logs != nil && a.Log {
		l, _ := w.agent.Logs.Log(w.id)
		shape := shapeOf(l)
		r.LogBegan, r.LogSince, r.LogFrom, r.LogEnded = shape.began, shape.since, shape.from, shape.ended
	}
	defer w.look()
	w.mu.Lock()
	if w.refused != nil {
		// The newer one is what the user waits for.
		r.Generation, r.Failure, r.Done, r.Absent = w.waiting.Generation, w.refused, false, false
	}
	w.mu.Unlock()
	if w.sent && sameNews(w.reported, r) {
		return
	}
	w.reported, w.sent = r, false
	w.resend(ctx)
}

// resend delivers the newest report, unless that was done.
func (w *worker) resend(ctx context.Context) {
	if w.sent || w.reported.Instance == "" {
		return
	}
	err := w.agent.Link.PutReport(ctx, w.reported)
	w.sent = err == nil
	if err != nil && ctx.Err() == nil {
		w.log.Warn("report not delivered", logkey.Error, err)
	}
}

// look notes that the instance was looked at. Only this goroutine calls it.
func (w *worker) look() {
	select {
	case <-w.looked:
	default:
		close(w.looked)
	}
}

// usageNews is how much the occupied space must change to be worth a report.
const usageNews = 16 << 20

// sameNews says whether two reports tell the same. Steps in between are not
// news: a creation would write a dozen records.
func sameNews(a, b kurabe.InstanceReport) bool {
	if diff := a.UsedBytes - b.UsedBytes; diff < usageNews && diff > -usageNews && (a.UsedBytes == 0) == (b.UsedBytes == 0) {
		b.UsedBytes = a.UsedBytes
	}
	if a.Failure != nil && b.Failure != nil && a.Failure.Attempts >= maxAttemptsNews {
		f := *b.Failure
		f.At, f.Attempts = a.Failure.At, a.Failure.Attempts
		b.Failure = &f
	}
	a.Step, b.Step = "", ""
	return reflect.DeepEqual(a, b)
}

// maxAttemptsNews is from which try on a failure with the same words is no news.
const maxAttemptsNews = 10

// retryReport shortens a pause while the newest report is not delivered.
func (w *worker) retryReport(pause time.Duration) time.Duration {
	if !w.sent {
		return min(pause, reportRetry)
	}
	return pause
}
