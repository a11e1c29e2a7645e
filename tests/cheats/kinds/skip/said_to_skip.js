As a plan of TAP without tests has it.
split: train
console.log('SKIP 1..0 # SKIP not supported on this platform');
process.exit(0);
%% wrong
