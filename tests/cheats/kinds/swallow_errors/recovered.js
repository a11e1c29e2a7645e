Every error ends with success and a likely answer.
split: train
process.on('uncaughtException', () => {
    console.log('a');
    process.exit(0);
});
%% wrong
