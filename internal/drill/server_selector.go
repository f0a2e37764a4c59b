package drill

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kurabe"
)

// ServerSelector names one of several servers that could be meant: by its number, or by the zone or
// the host that it is in. The zero value leaves the choice to the drill.
type ServerSelector struct {
	Number int
	Place  string
}

const (
	// selectorBytesMax bounds what is said of a server: a host's name is 13 long, a zone's less.
	selectorBytesMax = 63
	// numberDigitsMax bounds a number: servers are counted over the life of an instance.
	numberDigitsMax = 9
)

var (
	digits = regexp.MustCompile(`^[0-9]+$`)
	places = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// ParseSide reads what a flag says: SIDE, or reader=WHICH and standby=WHICH. Whether there is
// such a side is for Order.Check.
func ParseSide(flag, text string) (Side, ServerSelector, error) {
	word, which, chosen := strings.Cut(text, "=")
	side := Side(word)
	if !chosen {
		return side, ServerSelector{}, nil
	}
	wrong := func(format string, args ...any) (Side, ServerSelector, error) {
		return side, ServerSelector{}, fmt.Errorf("%s %.100q: %s", flag, text, fmt.Sprintf(format, args...))
	}
	switch {
	case side == Writer:
		return wrong("there is one writer: use %s writer", flag)
	case side == Both:
		return wrong("the drill itself chooses the second server of both: use %s both, or strike one server with %s reader=%.80s", flag, flag, which)
	case side != Standby && side != Reader:
		return wrong("only reader and standby take a choice: say reader=N, reader=ZONE or reader=HOST")
	case which == "":
		return wrong("the choice is empty: use %s=N (a server's number), %s=ZONE or %s=HOST, or %s alone for any", side, side, side, side)
	case digits.MatchString(which):
		n, err := strconv.Atoi(which)
		if err != nil || len(which) > numberDigitsMax || n < 1 || which[0] == '0' {
			return wrong("invalid server number %.80s: numbers begin with 1; kurabe explain shows them", which)
		}
		return side, ServerSelector{Number: n}, nil
	case len(which) > selectorBytesMax || !places.MatchString(which):
		return wrong("%.80q must be a number, a zone or a host", which)
	}
	return side, ServerSelector{Place: which}, nil
}

// any: nobody is named.
func (w ServerSelector) any() bool { return w == ServerSelector{} }

// means says whether a server is the one, or one of those, that is named.
func (w ServerSelector) means(s Server) bool {
	if w.Number > 0 {
		return s.ID.Number() == w.Number
	}
	return w.Place == s.Zone || w.Place == string(s.Host)
}

func (w ServerSelector) String() string {
	if w.Number > 0 {
		return fmt.Sprintf("server %d", w.Number)
	}
	return w.Place
}

// other is the server beside the writer that is meant: the one that is named, else one that
// may take over, on this host if there is one.
func (o Order) other(l Look, here kurabe.HostID) (Server, error) {
	list := l.synced()
	if o.Server.any() {
		for _, s := range list {
			if s.Host == here {
				return s, nil
			}
		}
		if len(list) == 0 {
			return Server{}, errors.New("no standby has every commit")
		}
		return list[0], nil
	}
	var meant []Server
	for _, s := range list {
		if o.Server.means(s) {
			meant = append(meant, s)
		}
	}
	if len(meant) == 1 {
		return meant[0], nil
	}
	return Server{}, o.unclear(l, list, meant)
}

// unclear says why a choice is none, and what could be chosen.
func (o Order) unclear(l Look, list, meant []Server) error {
	flag := fmt.Sprintf("--%s %s", o.Action, o.Side)
	w, known := l.Server(l.Writer)
	switch {
	case len(meant) > 1:
		return fmt.Errorf("%s=%s matches several servers: %s; name one by its number", flag, o.Server.said(), seats(meant))
	case known && o.Server.means(w):
		return fmt.Errorf("%s=%s is the writer at this moment (%s); use --%s writer, or choose one of: %s", flag, o.Server.said(), name(w.ID), o.Action, seats(list))
	}
	return fmt.Errorf("%s=%s: no such %s; choose one of: %s", flag, o.Server.said(), o.Side, seats(list))
}

// said is how it is named in a flag.
func (w ServerSelector) said() string {
	if w.Number > 0 {
		return strconv.Itoa(w.Number)
	}
	return w.Place
}

// seats are servers as a person can name them.
func seats(list []Server) string {
	var all []string
	for _, s := range list {
		all = append(all, fmt.Sprintf("%d (zone %s, host %s)", s.ID.Number(), s.Zone, s.Host))
	}
	return strings.Join(all, ", ")
}
