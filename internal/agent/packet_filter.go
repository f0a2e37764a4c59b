package agent

import (
	"errors"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/packetfilter"
)

// Filter enforces security groups in the kernel, as packetfilter.Table.
type Filter interface {
	Load([]packetfilter.Server) error
	Put(packetfilter.Server) error
	Drop(id string) error
}

// loadFilter puts the rules of saved assignments in force, before anything is done to servers.
func (a *Agent) loadFilter(saved []kurabe.Assignment) error {
	if a.Filter == nil {
		return nil
	}
	var servers []packetfilter.Server
	for _, s := range saved {
		server, err := packetfilter.ServerOf(s, a.Account(s))
		if err != nil {
			return err
		}
		servers = append(servers, server)
	}
	return a.Filter.Load(servers)
}

// filter has the kernel enforce an assignment; one in force already costs nothing. The rules of a
// server that is to go stay until nothing is left of it.
func (w *worker) filter(a kurabe.Assignment) error {
	switch {
	case a.Goal == kurabe.GoalAbsent:
		return nil
	case w.agent.Filter == nil && a.Filter == nil:
		return nil
	case w.agent.Filter == nil:
		return errors.New("this host cannot filter packets, and the security groups of the instance do not permit everything")
	}
	server, err := packetfilter.ServerOf(a, w.agent.Account(a))
	if err != nil {
		return err
	}
	return w.agent.Filter.Put(server)
}

// unfilter forgets the rules of a server of which nothing is left.
func (w *worker) unfilter() {
	if w.agent.Filter == nil {
		return
	}
	if err := w.agent.Filter.Drop(string(w.ID)); err != nil {
		w.Log.Warn("rules of a deleted server not removed", logkey.Error, err)
	}
}
