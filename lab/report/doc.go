// Package report is what people look at: the answer of a study as text for a terminal,
// as one line for a progress display, and as a page of HTML that needs no network and no
// JavaScript, with its charts as SVG.
//
// It must not show a figure that is not in the file: medians, ratios, intervals and
// verdicts come from result, and a chart that leaves something out says so on its face.
// Names and texts come from users' files, so nothing reaches a terminal or a page but
// through clean, and nothing a page but escaped. Its callers are run and the commands.
package report
