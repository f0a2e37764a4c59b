package engine

import "errors"

// ErrNotReady says that the server is starting or recovering; ask again.
var ErrNotReady = errors.New("the server does not accept connections yet")

// ErrHeld says that clients hold locks which a step waits for: it is bounded, and tried again
// for as long as they do.
var ErrHeld = errors.New("locks of clients block this step")
