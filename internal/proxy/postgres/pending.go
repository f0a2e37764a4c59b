package postgres

import (
	"kurabe/internal/wire/pg"
)

// kind is what the server owes for a request.
type kind uint8

const (
	query    kind = iota // anything, then ReadyForQuery
	syncing              // ReadyForQuery
	parse                // ParseComplete
	bind                 // BindComplete
	describe             // RowDescription or NoData
	execute              // rows, then CommandComplete, EmptyQueryResponse or PortalSuspended
	closing              // CloseComplete
	copyEnd              // nothing: where a client ended its COPY
	given                // nothing: we answer for it
	ours                 // anything, then ReadyForQuery, all for us
)

// request is what a connection has been sent and has not answered.
type request struct {
	kind    kind
	quiet   bool // the answer is not the client's, nor is an error
	hidden  bool // the answer is not the client's
	commits bool // it may commit
	ends    bool // it ends the transaction, one way or the other
	alters  bool // it names a prepared statement of the connection: after an error nobody knows
	failed  bool // an error was an answer
	answer  byte // of given
	named   *statement
	taken   *statement // it will fail, because the client has a statement of this name
	name    string     // the client's for it
	own     *own
}

// own is a query of ours.
type own struct {
	row     func(body []byte)
	done    func(*pg.Failure)
	failure *pg.Failure
}

// pending is a queue of requests.
type pending struct {
	ring   []request
	first  int
	length int
}

func (p *pending) push(r request) {
	if p.length == len(p.ring) {
		larger := make([]request, max(8, 2*p.length))
		for i := range p.length {
			larger[i] = *p.at(i)
		}
		p.ring, p.first = larger, 0
	}
	p.length++
	*p.at(p.length - 1) = r
}

func (p *pending) at(i int) *request { return &p.ring[(p.first+i)&(len(p.ring)-1)] }

func (p *pending) front() *request {
	if p.length == 0 {
		return nil
	}
	return p.at(0)
}

func (p *pending) pop() {
	*p.at(0) = request{}
	p.first = (p.first + 1) & (len(p.ring) - 1)
	p.length--
}

// remove takes the request at i out.
func (p *pending) remove(i int) {
	for ; i+1 < p.length; i++ {
		*p.at(i) = *p.at(i + 1)
	}
	*p.at(i) = request{}
	p.length--
}
