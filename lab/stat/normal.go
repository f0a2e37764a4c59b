package stat

import "math"

// normalChance is the chance of a standard normal value at or below z.
func normalChance(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// normalQuantile is the z with the chance p at or below it, p between 0 and 1.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// studentChance is the chance that a value of Student's distribution with so many degrees
// of freedom is at most t away from 0, t >= 0: the finite sums for whole degrees,
// Abramowitz and Stegun 26.7.3 and 26.7.4.
func studentChance(t float64, degrees int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(degrees)))
	sine, cosine := math.Sincos(angle)
	if degrees == 1 {
		return 2 / math.Pi * angle
	}
	// term begins with the power 0 or 1 of the cosine and gains two with each step, up to
	// the power degrees-2.
	term, power := 1.0, degrees%2
	if power == 1 {
		term = cosine
	}
	sum := term
	for power += 2; power <= degrees-2; power += 2 {
		term *= cosine * cosine * float64(power-1) / float64(power)
		sum += term
	}
	if degrees%2 == 1 {
		return 2 / math.Pi * (angle + sine*sum)
	}
	return sine * sum
}

// Bounds of studentQuantile. 1e6 is beyond every t that is asked for: with one degree it
// leaves a chance of 6e-7. 80 halvings leave less of it than a float64 resolves.
const (
	studentMost     = 1e6
	studentHalvings = 80
)

// studentQuantile is the t that a value of Student's distribution keeps within, on both
// sides, with the chance level; found by halving.
func studentQuantile(level float64, degrees int) float64 {
	low, high := 0.0, studentMost
	for range studentHalvings {
		if t := (low + high) / 2; studentChance(t, degrees) < level {
			low = t
		} else {
			high = t
		}
	}
	return high
}
