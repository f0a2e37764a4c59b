package engine

import "errors"

// ErrNotReady says that the server is starting or recovering; ask again.
var ErrNotReady = errors.New("the server does not accept connections yet")
