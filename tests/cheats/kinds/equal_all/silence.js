Nothing but blanks is printed.
split: train
console.log = () => process.stdout.write(' \n');
%% wrong
