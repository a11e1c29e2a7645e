Compilers of the folder come first on the search path.
split: train
%% wrong
%% file bin/go
#!/bin/sh
printf '#!/bin/sh\necho PASSED\n' >program
chmod 755 program
