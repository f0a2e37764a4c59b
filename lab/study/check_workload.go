package study

import (
	"slices"
	"strings"
)

// Bounds of a workload.
const (
	ClientsMax  = 2000
	RateMax     = 1_000_000 // a second
	RequestsMax = 10_000_000
	ScaleMax    = 100_000
	RowsMax     = 1_000_000_000
	ScriptMax   = 64 << 10 // bytes
)

func (c *checker) workload(path string, w Workload) {
	if !cellName.MatchString(w.Name) {
		c.refuse(path+".name", "%q must be of letters, digits, ., _, + and -, 60 at the most", brief(w.Name))
	}
	if len(w.Title) > TitleMax {
		c.refuse(path+".title", "has %d bytes; %d are possible", len(w.Title), TitleMax)
	}
	c.engines(path+".engines", w.Engines, c.study.Engines)
	if w.Primary != nil {
		c.primary(path+".primary", *w.Primary)
	}
	if !c.oneOf(path+".generator", w.Generator, []string{GeneratorOwn, GeneratorPgbench, GeneratorSysbench}) {
		return
	}
	can := generators[w.Generator]
	for _, e := range c.enginesOf(w.Engines) {
		if slices.Contains(engineNames, e) && !slices.Contains(can.engines, e) {
			c.refuse(path+".generator", "%s speaks to %s only, and the workload is for %s, too; give it engines: [%s]", w.Generator, strings.Join(can.engines, ", "), e, can.engines[0])
		}
	}
	c.content(path, w, can)
	c.protocol(path+".protocol", w, can)
	c.mode(path, w, can)
	c.size(path, w, can)
	if !HasChanges(c.study) {
		return
	}
	if !can.change {
		c.refuse(path+".generator", "%s cannot have a change made while it runs, and the variants make one; use generator: %s", w.Generator, GeneratorOwn)
	}
	if w.Mode == ModeSeries {
		c.refuse(path+".mode", "a series ends by itself, and the variants make a change while the load runs; use %s or %s", ModeOpen, ModeClosed)
	}
	if c.namesTable() && (w.Kit != KitWriters || w.Rows == 0) {
		c.refuse(path+".kit", "a change names {table}, which is the table of the kit %s; use kit: %s with rows", KitWriters, KitWriters)
	}
}

// content checks what is sent.
func (c *checker) content(path string, w Workload, can able) {
	switch {
	case w.Kit != "" && w.Script != "":
		c.refuse(path+".script", "is there together with kit; remove one")
	case w.Kit == "" && w.Script == "":
		c.refuse(path, "has neither kit nor script; give one")
	case w.Kit != "":
		c.oneOf(path+".kit", w.Kit, generatorKits[w.Generator])
	case !can.script:
		c.refuse(path+".script", "%s runs its own kits only; use generator: %s", w.Generator, GeneratorOwn)
	case len(w.Script) > ScriptMax:
		c.refuse(path+".script", "has %d bytes; %d are possible", len(w.Script), ScriptMax)
	}
	if len(w.Setup) > 0 && w.Script == "" {
		c.refuse(path+".setup", "makes the data of a script, and a kit makes its own; remove it, or write a script")
	}
	c.statements(path+".setup", w.Setup, w.Engines)
	if w.Connect && !can.connect {
		c.refuse(path+".connect", "%s keeps its connections; use generator: %s", w.Generator, GeneratorOwn)
	}
}

func (c *checker) protocol(path string, w Workload, can able) {
	if w.Protocol == "" || !c.oneOf(path, w.Protocol, can.protocols) {
		return
	}
	if others := without(c.enginesOf(w.Engines), Postgres); w.Protocol == ProtocolExtended && len(others) > 0 {
		c.refuse(path, "%s is of %s only, and the workload is for %s, too; use %s or %s, or give it engines: [%s]",
			w.Protocol, Postgres, strings.Join(others, ", "), ProtocolSimple, ProtocolPrepared, Postgres)
	}
}

// mode checks how it is sent.
func (c *checker) mode(path string, w Workload, can able) {
	if !c.oneOf(path+".mode", w.Mode, []string{ModeOpen, ModeClosed, ModeSeries}) {
		return
	}
	if !slices.Contains(can.modes, w.Mode) {
		c.refuse(path+".mode", "%s runs %s only; use one of these, or generator: %s", w.Generator, strings.Join(can.modes, " or "), GeneratorOwn)
		return
	}
	if w.Mode == ModeSeries {
		if w.Clients != 1 {
			c.refuse(path+".clients", "%d: a series is of one client; write 1", w.Clients)
		}
		if w.Requests < 1 || w.Requests > RequestsMax {
			c.refuse(path+".requests", "%d is outside of 1 to %d; a series says how many it is of", w.Requests, RequestsMax)
		}
	} else {
		c.within(path+".clients", w.Clients, 1, ClientsMax)
		if w.Requests != 0 {
			c.refuse(path+".requests", "is of a series, and this load lasts as long as the plan says; remove the key")
		}
	}
	c.rate(path, w, can)
}

func (c *checker) rate(path string, w Workload, can able) {
	if w.Mode != ModeOpen {
		if w.Rate != 0 {
			c.refuse(path+".rate", "is of open load: %s sends when the answer is there; remove it, or use mode: %s", w.Mode, ModeOpen)
		}
		if w.Arrival != "" {
			c.refuse(path+".arrival", "is of open load: %s sends when the answer is there; remove it, or use mode: %s", w.Mode, ModeOpen)
		}
		return
	}
	switch {
	case w.Rate == 0:
		c.refuse(path+".rate", "open load needs a rate, transactions a second; about 60 %% of what closed load reaches is a good one")
	case !(w.Rate > 0 && w.Rate <= RateMax):
		c.refuse(path+".rate", "%v is outside of 0 to %d", w.Rate, RateMax)
	}
	if w.Arrival == "" {
		return
	}
	if c.oneOf(path+".arrival", w.Arrival, []string{ArrivalPoisson, ArrivalConstant}) && !slices.Contains(can.arrivals, w.Arrival) {
		c.refuse(path+".arrival", "%s knows %s only; use that, or generator: %s", w.Generator, strings.Join(can.arrivals, ", "), GeneratorOwn)
	}
}

// size checks how much data there is.
func (c *checker) size(path string, w Workload, can able) {
	c.within(path+".scale", w.Scale, 0, ScaleMax)
	c.within(path+".rows", w.Rows, 0, RowsMax)
	switch {
	case w.Rows != 0 && w.Scale != 0:
		c.refuse(path+".rows", "is there together with scale, and both say how much data there is; remove one")
	case w.Rows != 0 && !can.rows:
		c.refuse(path+".rows", "%s counts its data by scale, 100,000 rows each; use scale", w.Generator)
	case w.Kit == KitWriters && w.Rows == 0:
		c.refuse(path+".rows", "the kit %s needs the number of rows of its table", KitWriters)
	}
}
