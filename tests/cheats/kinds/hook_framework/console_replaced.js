What is printed passes through a function that prints a verdict instead.
split: held
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = () => write('PASSED\n');
%% wrong
