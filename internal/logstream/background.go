package logstream

import (
	"context"
	"sync"
	"time"

	"kurabe/internal/blob"
	"kurabe/internal/volume"
)

const (
	pushers = 4 // instances that are pushed at a time

	surveyFolder = time.Minute
	surveyOther  = 10 * time.Minute
	// surveyShare bounds what looking costs: so many times what one look took.
	surveyShare = 100
	lookEvery   = time.Second
)

// Run pushes what the spool holds and looks whether the repository still holds what it
// took, until ctx ends. Then it returns nil.
func (s *Store) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.surveys(ctx) })
	slots := make(chan struct{}, pushers)
	busy := map[*instance]bool{} // guarded by mu
	for ctx.Err() == nil {
		for _, inst := range s.due(busy) {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			wg.Go(func() {
				if s.ahead(inst) {
					volume.GiveWay()
				}
				_ = s.pushAll(ctx, inst) // told by the report
				s.mu.Lock()
				delete(busy, inst)
				s.mu.Unlock()
				<-slots
			})
		}
		timer := time.NewTimer(lookEvery)
		select {
		case <-timer.C:
		case <-s.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// ahead says if the spool has room enough for pushes to be slow. Packing is most of
// what the log costs, and may wait until the databases leave the processor alone.
func (s *Store) ahead(inst *instance) bool {
	const share = 4
	s.mu.Lock()
	defer s.mu.Unlock()
	return inst.spoolBytes < s.cfg.InstanceBytesMax/share && s.spoolBytes < s.cfg.SpoolBytesMax/share
}

// due are the instances with something to push, marked as busy.
func (s *Store) due(busy map[*instance]bool) []*instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*instance
	for _, inst := range s.instances {
		if busy[inst] || inst.pushing != "" && time.Now().Before(inst.retry) || !inst.hasWorkLocked() {
			continue
		}
		busy[inst] = true
		out = append(out, inst)
	}
	return out
}

func (inst *instance) hasWorkLocked() bool {
	for _, r := range inst.runs {
		for n := len(r.pieces) - 1; n >= 0 && !r.pieces[n].pushed; n-- {
			if r.pieces[n].closed {
				return true
			}
		}
	}
	return false
}

// surveys looks at the repository at once and then now and then.
func (s *Store) surveys(ctx context.Context) {
	pause := time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()
		repo, err := s.cfg.Repository()
		if err == nil {
			err = s.survey(ctx, repo)
		}
		if err != nil {
			pause = min(max(2*pause, pushPauseMin), pushPauseMax)
			wait(ctx, pause)
			continue
		}
		pause = 0
		every := surveyOther
		if _, is := repo.Raw().(*blob.Folder); is {
			every = surveyFolder
		}
		wait(ctx, max(every, surveyShare*time.Since(began)))
	}
}
