# Importing never ends, so that a default for time-outs applies.
# split: train
# forms: plain
#% wrong
while True:
    pass
