package threadwait

const sysPoll = -2 // that machine has ppoll alone
