package harness

import "os"

// Whole says whether tests are to do all that they can, and not only what fits into the time of
// `make test`: KURABE_WHOLE is set, as `make fault` does.
func Whole() bool { return os.Getenv("KURABE_WHOLE") != "" }
