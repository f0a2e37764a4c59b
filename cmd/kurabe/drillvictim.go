package main

import (
	"cmp"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"kurabe"
	"kurabe/internal/drill"
)

func keyOf(r *http.Request) (string, error) {
	key := r.URL.Query().Get("permit")
	if key == "" {
		return "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, "a permit is needed: ask for it at /kurabe/drill/permit")
	}
	return key, nil
}

// victimOf reads what is to be done to which process of which server.
func victimOf(r *http.Request) (server kurabe.InstanceID, pid int, f drill.Fault, err error) {
	wrong := func(format string, args ...any) (kurabe.InstanceID, int, drill.Fault, error) {
		return "", 0, f, kurabe.Errorf(kurabe.CodeInvalidParameterValue, format, args...)
	}
	query := r.URL.Query()
	if pid, err = strconv.Atoi(query.Get("pid")); err != nil || pid < 1 {
		return wrong("pid %.40q is no number of a process", query.Get("pid"))
	}
	f.Action = drill.Action(query.Get("action"))
	if f.For, err = time.ParseDuration(cmp.Or(query.Get("for"), "0s")); err != nil {
		return wrong("for %.40q is no time, such as 5s", query.Get("for"))
	}
	for _, text := range query["peer"] {
		peer, err := netip.ParseAddr(text)
		if err != nil {
			return wrong("peer %.60q is no address", text)
		}
		f.Peers = append(f.Peers, peer)
	}
	return kurabe.InstanceID(query.Get("server")), pid, f, f.Check()
}
