// Package tree makes private installations of PostgreSQL, in which the allowed extensions are
// trusted, their scripts run in rooms, and all others are absent. It works on root's files
// alone and runs no program; a tree never changes once made.
package tree
