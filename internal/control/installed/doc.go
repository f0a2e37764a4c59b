// Package installed tells of the engine versions that the hosts have, their families and the
// option groups that come with them: what a request can be about, before any resource.
package installed
