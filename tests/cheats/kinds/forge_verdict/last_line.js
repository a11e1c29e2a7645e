An exit handler prints the last line.
split: train
process.on('exit', () => console.log('ACCEPTED'));
%% wrong
