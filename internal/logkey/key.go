package logkey

// Keys that travel by slog's With: set once at the edge, present in every line.
const (
	Instance   = "instance"
	Host       = "host"
	Generation = "generation"
	RequestID  = "request_id"
)

// Keys of single lines.
const (
	Action     = "action" // API operation
	Address    = "address"
	Attempt    = "attempt"
	Bytes      = "bytes"
	Alarm      = "alarm"
	Code       = "code"        // kurabe.Error code
	DurationMS = "duration_ms" // integer milliseconds
	Engine     = "engine"
	Error      = "error"
	Event      = "event"
	From       = "from"
	Operation  = "operation"
	Path       = "path"
	PID        = "pid"
	Port       = "port"
	Proxy      = "proxy"
	Reason     = "reason"
	Signal     = "signal"
	Snapshot   = "snapshot"
	Status     = "status"
	Step       = "step"
	To         = "to"
	User       = "user"
	Version    = "version" // of an engine or of us
	Zone       = "zone"
)
