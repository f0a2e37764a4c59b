// Package fleet measures the planner and the API with hundreds of instances of a fake engine,
// and the loss of a whole host with all its pairs.
//
// The service that it measures is this program again, see Serve: the real one has no fake engine.
package fleet
