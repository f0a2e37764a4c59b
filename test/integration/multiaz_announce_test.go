//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// TestApartAnnouncements: once another host has said that it has the endpoint, the one that has
// handed over says nothing of it any more, also when it has taken the endpoint a moment
// before. Clients that heard it last would send there for a second, until they ask again.
func TestApartAnnouncements(t *testing.T) {
	b := newApartBed(t)
	p := b.create(t, "postgres")
	watch := b.network.WatchARP(t)
	for range 2 {
		writer, standby := p.roles(t)
		was, now := writer.machine.Hardware(t), standby.machine.Hardware(t)
		endpoint := aws.ToString(p.Describe(t).Endpoint.Address)
		from := time.Now()
		if err := p.AskFailover(t); err != nil {
			t.Fatal(err)
		}
		p.takenOver(t, from, standby)
		p.waitWhole(t)
		var taken time.Time
		for _, word := range watch.Said(endpoint, from) {
			switch {
			case word.Machine == now && taken.IsZero():
				taken = word.At
			case word.Machine == was && !taken.IsZero():
				t.Errorf("%s says that it has %s, %v after its successor said so", was, endpoint, word.At.Sub(taken))
			}
		}
		if taken.IsZero() {
			t.Errorf("nobody was told that %s is at %s", endpoint, now)
		}
	}
}
