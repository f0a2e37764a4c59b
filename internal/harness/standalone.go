package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

// Standalone stands where a test does, for a program that is none and uses what tests use: what
// fails a test there is an error here.
type Standalone struct {
	testing.TB // what is not below has no meaning outside of a test
	ctx        context.Context
	say        func(format string, args ...any)
	cleanups   []func()
}

// failed is what ends a call of Try.
type failed struct{ err error }

// NewStandalone says what a test would log, and is ended by Close.
func NewStandalone(ctx context.Context, say func(format string, args ...any)) *Standalone {
	return &Standalone{ctx: ctx, say: say}
}

// Try calls what would be a test, or a part of it.
func (o *Standalone) Try(do func(t testing.TB)) (err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case failed:
			err = x.err
		default:
			panic(x)
		}
	}()
	do(o)
	return nil
}

// Close cleans up, the last one first, and goes on when that fails.
func (o *Standalone) Close() error {
	var errs []error
	for len(o.cleanups) > 0 {
		last := o.cleanups[len(o.cleanups)-1]
		o.cleanups = o.cleanups[:len(o.cleanups)-1]
		errs = append(errs, o.Try(func(testing.TB) { last() }))
	}
	return errors.Join(errs...)
}

// The part of testing.TB that has a meaning here.

func (o *Standalone) Helper()                  {}
func (o *Standalone) Failed() bool             { return false }
func (o *Standalone) Context() context.Context { return o.ctx }
func (o *Standalone) Cleanup(f func())         { o.cleanups = append(o.cleanups, f) }

func (o *Standalone) Log(args ...any)                 { o.say("  %s", fmt.Sprint(args...)) }
func (o *Standalone) Logf(format string, args ...any) { o.say("  "+format, args...) }

func (o *Standalone) Fatal(args ...any)                 { panic(failed{errors.New(fmt.Sprint(args...))}) }
func (o *Standalone) Fatalf(format string, args ...any) { panic(failed{fmt.Errorf(format, args...)}) }
func (o *Standalone) Skip(args ...any)                  { o.Fatal(args...) }
func (o *Standalone) Skipf(format string, args ...any)  { o.Fatalf(format, args...) }

// Apart says whether this process is in the namespaces of Isolated, which NewNetwork needs.
func Apart() bool { return os.Getenv(stageEnv) == stageInside }
