package control

import "kurabe"

func checkRetention(days int) error {
	if days < 0 || days > maxRetentionDays {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid backup retention period: %d. Must be between 0 and %d.", days, maxRetentionDays)
	}
	return nil
}

// modifyRetention puts another retention in force at once, unless the engine has to
// restart for it: then it waits like other settings.
func modifyRetention(s *kurabe.InstanceSpec, days *int) error {
	if days == nil {
		return nil
	}
	if err := checkRetention(*days); err != nil {
		return err
	}
	if s.Engine.RestartsForLog() && s.Now.KeepsLog() != (*days > 0) {
		return nil
	}
	s.Now.RetentionDays = *days
	if s.Next != nil {
		next := *s.Next
		next.RetentionDays = *days
		s.Next = &next
	}
	return nil
}

// sameButRetention says whether two settings differ in nothing that shows as a
// modification of the database; where the retention restarts it, they do.
func sameButRetention(a, b kurabe.InstanceSettings) bool {
	if a.KeepsLog() == b.KeepsLog() {
		b.RetentionDays = a.RetentionDays
	}
	return a == b
}
